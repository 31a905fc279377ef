"""The parent process of one device slot: `python -m ridgeline.tools.local.evaluator --device JSON` (no torch here).

Requests are JSON lines on stdin, `{"id", "task", "body"}`; answers JSON lines on stdout, `{"id", "result"}` or
`{"id", "error": {"type", "message"}}`. It owns the clock, one judge process (for the problem at hand), and the runners,
one for each candidate. Everything ends when stdin closes or the parent dies.
"""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from ridgeline.tools.build.toolchain import toolchain_for
from ridgeline.tools.engine import BaselineTask, BenchmarkTask, CompareTask, DescribeTask, ProfileTask, VerifyTask
from ridgeline.tools.errors import DeviceError, EngineError
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.gpu_state import GpuMonitor
from ridgeline.tools.machine.places import default_cache_dir
from ridgeline.tools.measure.graph_timing import time_graph
from ridgeline.tools.measure.late_outputs import collector_for
from ridgeline.tools.measure.request_cost import empty_plan, nothing_library, usual_request_s
from ridgeline.tools.measure.sides import Arena, EagerSide, RunnerSide, eager_mode
from ridgeline.tools.measure.verify import verify_candidate
from ridgeline.tools.records.problem import DescribedTarget, Description, Device, Target
from ridgeline.tools.records.results import Baselines, Build, Comparison, Floor, Profile, Timing, Verdict
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, Label, ReasonCode
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.plan import runner_plan
from ridgeline.tools.runner.pool import RunnerPool
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.sandbox.sandbox import UNSAFE_VARIABLE, Confined, Sandbox, Tier, probe_sandbox

logger = logging.getLogger(__name__)


class Evaluator:
    """Measures on one device. Holds the judge of one problem at a time; `close()` ends it."""

    def __init__(self, device: Device, *, cache_dir: Path | None = None, sandbox: Sandbox | None = None) -> None:
        self._device = device
        self._cache_dir = cache_dir or default_cache_dir()
        self._sandbox = sandbox
        self._judge: JudgeProcess | None = None
        self._judge_key: tuple[str, ...] = ()
        self._secrets: dict[tuple[str, ...], bytes] = {}
        self._left_out: dict[tuple[str, ...], set[str]] = defaultdict(set)  # what lost a problem's judge the GPU
        self._request_costs: dict[tuple[str, ...], float] = {}
        self._pool = RunnerPool(self._cache_dir)
        self._monitor = GpuMonitor(device.uuid) if device.kind is DeviceKind.CUDA else None

    # ------------------------------------------------------------------------------------------------------------ tasks

    def describe(self, task: DescribeTask) -> Description:
        """Run the reference once and describe it."""
        return self._judge_for(task.problem).problem.description

    def verify(self, task: VerifyTask) -> Verdict:
        """Check a built candidate on secret inputs; `sanitized` on a GPU: run it alone under compute-sanitizer."""
        judge = self._judge_for(task.problem)
        started = time.perf_counter()
        if task.sanitized and self._device.kind is DeviceKind.CUDA:
            return self._examine(task, judge.problem.description)
        verdict = self._pool.again_if_killed(
            lambda: verify_candidate(
                judge,
                lambda: self._runner(task, then_next=True),
                tolerance=task.problem.tolerance,
                extra_trials=task.extra_trials,
                first_extra=task.first_extra,
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
        from ridgeline.tools.measure.roofline import ceilings

        judge = self._judge_for(task.problem)
        timing = self._pool.again_if_killed(lambda: self._time(task, judge))
        if timing.reason_code is ReasonCode.BELOW_FLOOR:
            before = self._floor(task.problem, judge)
            ceilings(task.problem.device, again=True)
            if self._floor(task.problem, judge).floor_ms < before.floor_ms:
                timing = self._pool.again_if_killed(lambda: self._time(task, judge))
        self._start_ahead(task)
        return timing

    def _time(self, task: BenchmarkTask, judge: JudgeProcess) -> Timing:
        from ridgeline.tools.measure.benchmark import TimingSettings, time_candidate

        self._pool.park()
        # before the candidate's process is there: it could be at work meanwhile, and have more taken off its time
        floor, request_s = self._floor(task.problem, judge), self._request_s(task.problem, task.build)
        try:
            with self._runner(task) as runner:
                timing = time_candidate(
                    RunnerSide(runner),
                    EagerSide(judge, eager_mode(task.problem.device.kind, task.verdict.precision_class)),
                    _arena(judge),
                    settings=TimingSettings.for_purpose(task.purpose),
                    floor=floor,
                    collect=collector_for(runner, judge, task.problem.interface),
                    request_s=request_s,
                    observe=self._observe,
                )
                return self._with_graph_time(replace(timing, load_s=runner.load_s), runner, judge)
        except RunnerFailure as fault:
            return Timing.failed(fault.finding)

    def _with_graph_time(self, timing: Timing, runner: RunnerProcess, judge: JudgeProcess) -> Timing:
        """Add what a call takes in a CUDA graph, for a kernel whose launch takes longer than its work.

        Raises:
            RunnerFailure: a call crashed, hung or broke out where it was captured or replayed.
        """
        if judge.device_kind is not DeviceKind.CUDA or Label.LAUNCH_BOUND not in timing.labels:
            return timing
        try:
            return replace(timing, graph_ms=time_graph(runner, _arena(judge)))
        except RunnerFailure as fault:
            if fault.finding.code is not ReasonCode.CUDA_ERROR:
                raise
            # it synchronises or allocates, which a capture forbids: no fault of a kernel
            logger.info("no CUDA graph of this kernel: %s", fault.finding.reason)
            return timing

    def _observe(self) -> dict[str, float]:
        """Return a GPU's clocks, power and throttle reasons now; nothing on a CPU."""
        return self._monitor.sample().clocks() if self._monitor is not None else {}

    def compare(self, task: CompareTask) -> Comparison:
        """Time two candidates in one alternating run.

        Raises:
            EngineError: one of them failed; verify them first.
        """
        from ridgeline.tools.measure.benchmark import TimingSettings, compare_sides
        from ridgeline.tools.measure.distrust import Distrusted

        judge = self._judge_for(task.problem)
        pairs = (task.first, task.first_build), (task.second, task.second_build)
        tasks = [VerifyTask(problem=task.problem, candidate=c, build=b, purpose=task.purpose) for c, b in pairs]
        self._pool.park()
        request_s = self._request_s(task.problem, task.first_build)
        try:
            with self._runner(tasks[0]) as first, self._runner(tasks[1]) as second:
                return compare_sides(
                    RunnerSide(first),
                    RunnerSide(second),
                    _arena(judge),
                    settings=TimingSettings.for_purpose(task.purpose),
                    collects=[collector_for(each, judge, task.problem.interface) for each in (first, second)],
                    request_s=request_s,
                    observe=self._observe,
                )
        except (RunnerFailure, Distrusted) as fault:
            raise EngineError(f"{task.first.id} and {task.second.id} cannot be compared: {fault}") from fault

    def baseline(self, task: BaselineTask) -> Baselines:
        """Time PyTorch's own ways to run the reference."""
        from ridgeline.tools.measure.baselines import measure_baselines, measure_next

        problem = task.problem
        self._pool.park()
        if task.after is not None and problem.description is not None:
            if self._judge is None:
                self._expect_ready()
            # no judge is started to describe the problem: on a GPU it would have to make room for the mode's own
            return measure_next(
                problem,
                problem.description,
                task.after,
                start_judge=lambda: self._another_judge(problem),
                cache_dir=self._cache_dir,
            )
        return measure_baselines(
            problem,
            self._judge_for(problem).problem.description,
            start_judge=lambda: self._another_judge(problem),
            cache_dir=self._cache_dir,
            compile_modes=task.compile_modes,
            again=task.again,
            eager_only=task.eager_only,
        )

    def profile(self, task: ProfileTask) -> Profile:
        """Say what limits a timed candidate."""
        from ridgeline.tools.profile.profiler import profile_candidate

        judge = self._judge_for(task.problem)
        return profile_candidate(
            device=self._device,
            description=judge.problem.description,
            floor=self._floor(task.problem, judge),
            timing=task.timing,
            library=_native_library(task),
            sandbox=self._find_sandbox(),
            build_log=task.build.log,
            runner=self._alone(task.problem, task.build),
        )

    def _examine(self, task: VerifyTask, description: Description) -> Verdict:
        from ridgeline.tools.profile.sanitizer import examine

        started, sandbox = time.perf_counter(), self._find_sandbox()
        report = examine(
            self._alone(task.problem, task.build),
            signature=description.signature,
            library=Path(task.build.library_path or ""),
            sandbox=sandbox,
        )
        return report.verdict(sandbox_tier=sandbox.tier.value, verify_s=time.perf_counter() - started)

    def _alone(self, problem: DescribedTarget, build: Build) -> Confined | None:
        """Return how a CUDA candidate of interface `c` is confined when it runs under a profiler, else None."""
        if problem.device.kind is not DeviceKind.CUDA or problem.interface != Interface.C or not build.library_path:
            return None
        return runner_plan(problem, build, self._cache_dir).confined

    def close(self) -> None:
        """End the judge and stop looking at the GPU."""
        if self._monitor is not None:
            self._monitor.close()
        self.forget_judge()

    def forget_judge(self) -> None:
        """End the judge, and the runners that wait with its memory: the next task starts a new one."""
        self._pool.close()
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    # --------------------------------------------------------------------------------------------------------- processes

    def _judge_for(self, problem: Target) -> JudgeProcess:
        key = problem.judge_key
        if self._judge is not None and self._judge_key == key:
            return self._judge
        self.forget_judge()
        self._expect_ready()
        # one secret for each problem of a run: every candidate faces the same trials, and no rng seed leads to them
        secret = self._secrets.setdefault(key, os.urandom(16))
        self._judge = JudgeProcess(problem, secret, self._cache_dir, left_out=self._left_out[key])
        self._judge_key = key
        return self._judge

    def _another_judge(self, problem: Target) -> JudgeProcess:
        """Return a judge with secrets of its own, alone on a GPU: no large problem fits twice, and ours starts again later."""
        if problem.device.kind is DeviceKind.CUDA:
            self.forget_judge()
        return JudgeProcess(problem, os.urandom(16), self._cache_dir, left_out=self._left_out[problem.judge_key])

    def _expect_ready(self) -> None:
        """Refuse a GPU that nothing built here runs on or that other processes use, before anything of ours does.

        Raises:
            DeviceError: there is no fitting compiler, its driver is too old, or it is busy; one line says with what.
        """
        if self._device.kind is DeviceKind.CUDA:
            toolchain_for(self._device)
        busy = self._monitor.busy_with() if self._monitor is not None else ""
        if busy:
            raise DeviceError(busy)

    def _find_sandbox(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = Sandbox(probe_sandbox(allow_unsafe=os.environ.get(UNSAFE_VARIABLE) == "1").tier)
        return self._sandbox

    def _runner(self, task: VerifyTask | BenchmarkTask, *, then_next: bool = False) -> RunnerProcess:
        judge = self._judge_for(task.problem)
        judge.request("wipe")
        runner = self._pool.start(self._find_sandbox(), task, judge.problem)
        if then_next:
            self._start_ahead(task)  # nothing is timed meanwhile
        return runner

    def _start_ahead(self, task: VerifyTask | BenchmarkTask) -> None:
        self._pool.start_ahead(self._find_sandbox(), task, self._judge_for(task.problem).problem)

    def _request_s(self, problem: DescribedTarget, build: Build) -> float:
        """Return what a request costs, measured once for each problem (a Python runner's takes nothing off)."""
        if problem.interface != Interface.C:
            return 0.0
        judge = self._judge_for(problem)
        if self._judge_key not in self._request_costs:
            library = nothing_library(self._cache_dir, self._device)
            plan = empty_plan(runner_plan(problem, build, self._cache_dir), library)
            self._request_costs[self._judge_key] = usual_request_s(self._find_sandbox(), plan, judge)
        return self._request_costs[self._judge_key]

    def _floor(self, problem: DescribedTarget, judge: JudgeProcess) -> Floor:
        from ridgeline.tools.measure.roofline import ceilings, floor_for

        return floor_for(judge.problem.description, ceilings(problem.device), problem.tolerance)


def _native_library(task: ProfileTask) -> Path | None:
    """Return the candidate's shared object; None for a module, whose build is a bundle of what its file builds."""
    is_native = task.candidate.interface is not Interface.MODULE
    return Path(task.build.library_path) if task.build.library_path and is_native else None


def _arena(judge: JudgeProcess) -> Arena:
    return Arena(judge, judge.problem.n_sets, on_gpu=judge.device_kind is DeviceKind.CUDA)


# ------------------------------------------------------------------------------------------------------------- serving
