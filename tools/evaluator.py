"""The parent process of one device slot: `python -m ridgeline.tools.evaluator --device JSON` (no torch here).

Requests are JSON lines on stdin, `{"id", "task", "body"}`; answers JSON lines on stdout, `{"id", "result"}` or
`{"id", "error": {"type", "message"}}`. It owns the clock, one judge process (for the problem at hand), and the runners,
one for each candidate. Everything ends when stdin closes or the parent dies.
"""

from __future__ import annotations

import argparse
import errno
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeVar

from ridgeline.tools.arena import Arena, EagerSide, RunnerSide
from ridgeline.tools.cache import default_cache_dir
from ridgeline.tools.engine import (
    BaselineTask,
    BenchmarkTask,
    CompareTask,
    DescribeTask,
    ProblemOnDevice,
    ProfileTask,
    Task,
    VerifyTask,
)
from ridgeline.tools.errors import DeviceError, EngineError, JudgeCrashed, RidgelineError, StorageError
from ridgeline.tools.judge_process import JudgeProcess
from ridgeline.tools.lifeline import end_with_parent
from ridgeline.tools.records import (
    Baselines,
    Build,
    Candidate,
    Comparison,
    Description,
    Device,
    DeviceKind,
    Floor,
    Interface,
    Label,
    Profile,
    Purpose,
    ReasonCode,
    Record,
    Timing,
    Verdict,
)
from ridgeline.tools.runner_plans import runner_plan
from ridgeline.tools.runner_process import RunnerFailure, RunnerProcess, was_killed
from ridgeline.tools.sandbox import UNSAFE_VARIABLE, Sandbox, Tier, probe_sandbox
from ridgeline.tools.verify import verify_candidate

logger = logging.getLogger(__name__)

M = TypeVar("M", Verdict, Timing)

RUNNER_LOG_VARIABLE = "RIDGELINE_RUNNER_LOG"
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"  # as run.log has it, where the engine sends stderr


class Evaluator:
    """Measures on one device. Holds the judge of one problem at a time; `close()` ends it."""

    def __init__(self, device: Device, *, cache_dir: Path | None = None, sandbox: Sandbox | None = None) -> None:
        self._device = device
        self._cache_dir = cache_dir or default_cache_dir()
        self._sandbox = sandbox
        self._judge: JudgeProcess | None = None
        self._judge_key: tuple[str, ...] = ()
        self._secrets: dict[tuple[str, ...], bytes] = {}

    # ------------------------------------------------------------------------------------------------------------ tasks

    def describe(self, task: DescribeTask) -> Description:
        """Run the reference once and describe it."""
        return self._judge_for(task.problem).problem.description

    def verify(self, task: VerifyTask) -> Verdict:
        """Check a built candidate on secret inputs."""
        judge = self._judge_for(task.problem)
        started = time.perf_counter()
        verdict = _again_if_killed(
            lambda: verify_candidate(
                judge,
                lambda: self._runner(task, task.candidate, task.build, task.purpose, sanitized=task.sanitized),
                tolerance=task.problem.tolerance,
                extra_trials=task.extra_trials,
                is_judged=not task.sanitized,
            )
        )
        tier = self._find_sandbox().tier
        labels = (*verdict.labels, Label.NO_SANDBOX) if tier is Tier.NONE else verdict.labels
        return replace(verdict, labels=labels, sandbox_tier=tier.value, verify_s=time.perf_counter() - started)

    def benchmark(self, task: BenchmarkTask) -> Timing:
        """Time a verified candidate in alternation with eager PyTorch.

        A time below the floor may mean that the ceilings were measured on a busy machine: they are measured again, and
        the candidate once more, before it is believed.
        """
        from ridgeline.tools.roofline import ceilings

        judge = self._judge_for(task.problem)
        timing = _again_if_killed(lambda: self._time(task, judge))
        if timing.reason_code is not ReasonCode.BELOW_FLOOR:
            return timing
        before = self._floor(task.problem, judge)
        ceilings(task.problem.device, again=True)
        is_lower = self._floor(task.problem, judge).floor_ms < before.floor_ms
        return self._time(task, judge) if is_lower else timing

    def _time(self, task: BenchmarkTask, judge: JudgeProcess) -> Timing:
        from ridgeline.tools.benchmark import TimingSettings, time_candidate

        try:
            with self._runner(task, task.candidate, task.build, task.purpose) as runner:
                side = RunnerSide(runner)
                return time_candidate(
                    side,
                    EagerSide(judge),
                    _arena(judge),
                    settings=TimingSettings.for_purpose(task.purpose),
                    floor=self._floor(task.problem, judge),
                    collect=_collect(side, task.problem),
                )
        except RunnerFailure as fault:
            return Timing(status=fault.status, reason_code=fault.reason_code, reason=fault.reason)

    def compare(self, task: CompareTask) -> Comparison:
        """Time two candidates in one alternating run.

        Raises:
            EngineError: one of them failed; verify them first.
        """
        from ridgeline.tools.benchmark import Distrusted, TimingSettings, compare_sides

        judge = self._judge_for(task.problem)
        try:
            with (
                self._runner(task, task.first, task.first_build, Purpose.CERTIFY) as first,
                self._runner(task, task.second, task.second_build, Purpose.CERTIFY) as second,
            ):
                sides = RunnerSide(first), RunnerSide(second)
                return compare_sides(
                    *sides,
                    _arena(judge),
                    settings=TimingSettings.for_purpose(Purpose.CERTIFY),
                    collects=(_collect(sides[0], task.problem), _collect(sides[1], task.problem)),
                )
        except (RunnerFailure, Distrusted) as fault:
            raise EngineError(f"{task.first.id} and {task.second.id} cannot be compared: {fault}") from fault

    def baseline(self, task: BaselineTask) -> Baselines:
        """Time PyTorch's own ways to run the reference."""
        from ridgeline.tools.baselines import measure_baselines

        problem = task.problem
        return measure_baselines(
            problem,
            self._judge_for(problem).problem.description,
            start_judge=lambda: JudgeProcess(problem, os.urandom(16), self._cache_dir),
            cache_dir=self._cache_dir,
            compile_modes=task.compile_modes,
        )

    def profile(self, task: ProfileTask) -> Profile:
        """Say what limits a timed candidate."""
        from ridgeline.tools.profiler import profile_candidate

        judge = self._judge_for(task.problem)
        return profile_candidate(
            device=self._device,
            description=judge.problem.description,
            floor=self._floor(task.problem, judge),
            timing=task.timing,
            library=Path(task.build.library_path) if task.build.library_path else None,
            sandbox=self._find_sandbox(),
        )

    def close(self) -> None:
        """End the judge."""
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    # --------------------------------------------------------------------------------------------------------- processes

    def _judge_for(self, problem: ProblemOnDevice) -> JudgeProcess:
        key = (problem.reference_source, problem.interface, problem.tolerance)
        if self._judge is not None and self._judge_key == key:
            return self._judge
        self.close()
        if problem.device.kind is not DeviceKind.CPU:
            raise DeviceError(f"{problem.device.name}: kernels are judged on CPUs only so far; use --device cpu")
        # one secret for each problem of a run: every candidate faces the same trials, and no rng seed leads to them
        secret = self._secrets.setdefault(key, os.urandom(16))
        self._judge = JudgeProcess(problem, secret, self._cache_dir)
        self._judge_key = key
        return self._judge

    def forget_judge(self) -> None:
        """Let the next task start a new judge: this one died."""
        self.close()

    def _find_sandbox(self) -> Sandbox:
        if self._sandbox is None:
            report = probe_sandbox(allow_unsafe=os.environ.get(UNSAFE_VARIABLE) == "1")
            self._sandbox = Sandbox(report.tier)
        return self._sandbox

    def _runner(
        self, task: Task[Any], candidate: Candidate, build: Build, purpose: Purpose, *, sanitized: bool = False
    ) -> RunnerProcess:
        judge = self._judge_for(task.problem)
        plan = runner_plan(task.problem, build, self._cache_dir, sanitized=sanitized)
        _log_runner(candidate, purpose, type(task).__name__)
        return RunnerProcess(self._find_sandbox(), plan, judge.problem)

    def _floor(self, problem: ProblemOnDevice, judge: JudgeProcess) -> Floor:
        from ridgeline.tools.roofline import ceilings, floor_for

        return floor_for(judge.problem.description, ceilings(problem.device))


def _again_if_killed(measure: Callable[[], M]) -> M:
    """Return what `measure` finds, asked once more when its runner was killed as nobody but the machine should."""
    result = measure()
    if not was_killed(result.status, result.reason):
        return result
    logger.warning("a runner was %s: measuring again", result.reason)
    return measure()


def _collect(side: RunnerSide, problem: ProblemOnDevice) -> Callable[[int], None] | None:
    return side.collect if problem.interface == Interface.TORCH else None


def _arena(judge: JudgeProcess) -> Arena:
    return Arena(judge, judge.problem.n_sets)


def _log_runner(candidate: Candidate, purpose: Purpose, task: str) -> None:
    """Append one line for each runner to the file that a test asks for."""
    path = os.environ.get(RUNNER_LOG_VARIABLE)
    if not path:
        return
    entry = {"candidate_id": candidate.id, "purpose": purpose, "task": task, "pid": os.getpid(), "time": time.time()}
    with open(path, "a", encoding="utf-8") as log:
        log.write(json.dumps(entry) + "\n")


# ------------------------------------------------------------------------------------------------------------- serving

_TASKS: dict[str, tuple[type[Task[Any]], Callable[[Evaluator, Any], Record]]] = {
    "DescribeTask": (DescribeTask, Evaluator.describe),
    "BaselineTask": (BaselineTask, Evaluator.baseline),
    "VerifyTask": (VerifyTask, Evaluator.verify),
    "BenchmarkTask": (BenchmarkTask, Evaluator.benchmark),
    "CompareTask": (CompareTask, Evaluator.compare),
    "ProfileTask": (ProfileTask, Evaluator.profile),
}


# What this process itself may run into: a full disk, a program that hangs, a figure nobody expected. One task's
# failure must not end the device's evaluator; a fault in its logic (TypeError, AttributeError, …) still does.
_OURS = (subprocess.SubprocessError, ValueError)
_USERS_TO_MEND = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT)


def answer(evaluator: Evaluator, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one request; what can be wrong with machine or problem comes back as an error."""
    try:
        kind, handle = _TASKS[request["task"]]
        return {"id": request["id"], "result": handle(evaluator, kind.from_json(request["body"])).to_json()}
    except JudgeCrashed as error:
        evaluator.forget_judge()
        return {"id": request["id"], "error": {"type": "JudgeCrashed", "message": str(error)}}
    except RidgelineError as error:
        return {"id": request["id"], "error": {"type": type(error).__name__, "message": str(error)}}
    except OSError as error:
        logger.exception("%s failed", request.get("task"))
        evaluator.forget_judge()
        message = f"{error.filename or request.get('task')}: {error.strerror or error}"
        kind_of_error = StorageError if error.errno in _USERS_TO_MEND else EngineError
        return {"id": request["id"], "error": {"type": kind_of_error.__name__, "message": message}}
    except _OURS as error:
        logger.exception("%s failed", request.get("task"))
        evaluator.forget_judge()  # whatever state it is in
        message = f"{request.get('task')}: {type(error).__name__}: {error}"
        return {"id": request["id"], "error": {"type": EngineError.__name__, "message": message}}


def serve(evaluator: Evaluator, requests: IO[str], answers: IO[str]) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        answers.write(json.dumps(answer(evaluator, json.loads(line))) + "\n")
        answers.flush()


def main() -> None:
    """Serve one device on stdin and stdout."""
    parser = argparse.ArgumentParser(prog="ridgeline.tools.evaluator", description="one device slot, for the engine")
    parser.add_argument("--device", required=True, help="the device as JSON")
    parser.add_argument("--parent", type=int, help="the pid of the engine, with which this process ends")
    arguments = parser.parse_args()
    end_with_parent(arguments.parent)
    device = Device.from_json(json.loads(arguments.device))
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=LOG_FORMAT)
    logging.getLogger("ridgeline").setLevel(logging.INFO)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the search's to handle: it closes stdin when it is done
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may print between the answers
    evaluator = Evaluator(device)
    try:
        serve(evaluator, sys.stdin, answers)
    finally:
        evaluator.close()


if __name__ == "__main__":
    main()
