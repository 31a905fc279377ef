"""The evaluator as the engine starts it: one process, JSON lines, everything gone when its input closes."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.candidates import candidate_of
from tests.environments import child_environment
from tests.graph.memory_engine import DESCRIPTION, MemoryEngine, target

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import (
    BaselineTask,
    BenchmarkTask,
    CompareTask,
    CompileTask,
    DescribeTask,
    NextBaselineTask,
    ProfileTask,
    VerifyTask,
)
from ridgeline.tools.local import evaluator
from ridgeline.tools.local.__main__ import _TASKS, answer
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.request_cost import LoopCost
from ridgeline.tools.records import evaluation_limit
from ridgeline.tools.records.problem import DescribedTarget, Description, Target
from ridgeline.tools.records.results import Build, Comparison, FailedComparison
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Purpose, ReasonCode, Status
from ridgeline.tools.runner.deadline import Deadline
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

pytestmark = [pytest.mark.long, pytest.mark.sandboxed]

REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        {body}
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return []
"""


def request(number: int, body: str) -> str:
    problem = Target(
        name="p",
        reference_source=REFERENCE.format(body=body),
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=detect_device("cpu"),
    )
    return json.dumps({"id": number, "task": "DescribeTask", "body": DescribeTask(problem=problem).to_json()}) + "\n"


def started(cache: Path) -> subprocess.Popen[str]:
    """Return an evaluator of the CPU as the engine starts it, to be closed by `with`."""
    command = [sys.executable, "-P", "-m", "ridgeline.tools.local", "--device"]
    return subprocess.Popen(
        [*command, json.dumps(detect_device("cpu").to_json())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_environment(RIDGELINE_CACHE_DIR=str(cache)),
        text=True,
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder: what the first evaluator exported there, the second one reads."""
    return tmp_path_factory.mktemp("cache")


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.thorough
def test_evaluator_answers_in_order_and_takes_its_judge_with_it(kept: Path) -> None:
    with started(kept) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(1, "raise KeyError('gone')") + request(2, "return torch.relu(x)"))
        process.stdin.flush()
        first, second = json.loads(process.stdout.readline()), json.loads(process.stdout.readline())
        assert first["error"]["type"] == "BadReferenceError"
        assert "KeyError" in first["error"]["message"]
        assert second["id"] == 2
        assert second["result"]["compulsory_bytes"] == 2 * 64 * 64 * 4
        judge, keeper = children_of(process.pid)
        process.stdin.close()
        assert process.wait(60) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in (judge, keeper))


def test_judge_dies_with_a_killed_evaluator(kept: Path) -> None:
    with started(kept) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(1, "return torch.relu(x)"))
        process.stdin.flush()
        process.stdout.readline()
        children = children_of(process.pid)
        process.kill()
        process.wait(60)
        deadline = time.monotonic() + 60
        while any(is_running(pid) for pid in children) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(is_running(pid) for pid in children)


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class _Failing(Evaluator):
    """An evaluator on a machine that fails it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(detect_device("cpu"))
        self.error = error

    def describe(self, task: DescribeTask) -> Description:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError(28, "No space left on device"), "StorageError", "No space left on device"),
        (OSError(5, "Input/output error"), "EngineError", "Input/output error"),
        (subprocess.TimeoutExpired(["g++"], 120), "EngineError", "TimeoutExpired"),
        (ValueError("40"), "EngineError", "ValueError"),
    ],
)
def test_a_fault_of_ours_is_answered_and_does_not_end_the_evaluator(
    error: Exception, kind: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RIDGELINE_CACHE_DIR", str(tmp_path))
    evaluator = _Failing(error)
    monkeypatch.setitem(_TASKS, "DescribeTask", (DescribeTask, _Failing.describe))
    reply = answer(evaluator, json.loads(request(3, "return x")))
    assert (reply["id"], reply["error"]["type"]) == (3, kind)
    assert words in reply["error"]["message"]


def test_pytorch_s_next_way_is_asked_for_by_a_task_of_its_own_which_adds_nothing_where_none_is_pending(
    tmp_path: Path,
) -> None:
    problem = target().described(DESCRIPTION)
    measured = MemoryEngine()._baseline(BaselineTask(problem=problem))
    task = NextBaselineTask(problem=problem, purpose=Purpose.CERTIFY, after=measured)
    assert NextBaselineTask.from_json(json.loads(json.dumps(task.to_json()))) == task
    asked = {"id": 7, "task": task.name, "body": task.to_json()}
    evaluator = Evaluator(problem.device, cache_dir=tmp_path)
    assert answer(evaluator, asked) == {"id": 7, "result": measured.to_json()}


def test_evaluator_without_its_parent_does_not_begin(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "ridgeline.tools.local", "--device"]
    environment = child_environment(RIDGELINE_CACHE_DIR=str(tmp_path))
    described = json.dumps(detect_device("cpu").to_json())
    # 1 is never the parent here: as if the engine had died and left the evaluator to another process
    gone = subprocess.run(
        [*command, described, "--parent", "1"], env=environment, input="", capture_output=True, check=False
    )
    assert gone.returncode == 1
    ours = [*command, described, "--parent", str(os.getpid())]
    assert subprocess.run(ours, env=environment, input="", capture_output=True, check=False).returncode == 0


def test_evaluators_log_goes_to_stderr_as_run_log_has_it(tmp_path: Path) -> None:
    code = (
        "import logging, sys; from ridgeline.tools.local import __main__ as evaluator; "
        "sys.argv[1:] = ['--device', sys.argv[1]]; "
        "evaluator.serve = lambda *_: logging.getLogger('ridgeline.tools.measure.baselines').info('baseline eager: 1 ms'); "
        "evaluator.main()"
    )
    environment = child_environment(RIDGELINE_CACHE_DIR=str(tmp_path))
    command = [sys.executable, "-c", code, json.dumps(detect_device("cpu").to_json())]
    done = subprocess.run(command, env=environment, input="", capture_output=True, text=True, check=True)
    assert re.fullmatch(
        r"[-\d]+ [:,\d]+ INFO ridgeline\.tools\.measure\.baselines: baseline eager: 1 ms\n", done.stderr
    )


RELU = (
    "void run(const float* x, float* out, void*) {CHECK for (int i = 0; i < 4096; ++i) out[i] = x[i] > 0 ? x[i] : 0;}"
)
HONEST = RELU.replace("CHECK", "")
CRASHES_IN_LONG_LOOPS = RELU.replace("CHECK", " static int calls = 0; if (++calls > 2000) __builtin_trap();")
"""A kernel that survives its verification, which calls it some hundred times."""


class Judged:
    """A problem with its evaluator, and its kernels built."""

    def __init__(self, folder: Path) -> None:
        device, sandbox = detect_device("cpu"), Sandbox(probe_sandbox().tier)
        self.evaluator = Evaluator(device, cache_dir=folder, sandbox=sandbox)
        target = DescribeTask.from_json(json.loads(request(1, "return torch.relu(x)"))["body"]).problem
        self.problem: DescribedTarget = target.described(self.evaluator.describe(DescribeTask(problem=target)))
        self.compiler = Compiler(sandbox, folder, device)

    def built(self, name: str, source: str) -> tuple[Candidate, Build]:
        candidate = candidate_of(source, name=name)
        [build] = asyncio.run(self.compiler.compile_batch([CompileTask(problem=self.problem, candidate=candidate)]))
        assert build.status is Status.OK, build.log
        return candidate, build

    def profiled(self, candidate: Candidate) -> Build:
        task = CompileTask(problem=self.problem, candidate=candidate, profiled=True)
        [build] = asyncio.run(self.compiler.compile_batch([task]))
        return build

    def compare(self, first: tuple[Candidate, Build], second: tuple[Candidate, Build]) -> Comparison | FailedComparison:
        task = CompareTask(
            problem=self.problem, first=first[0], first_build=first[1], second=second[0], second_build=second[1]
        )
        return self.evaluator.compare(replace(task, purpose=Purpose.SEARCH))


@pytest.fixture(scope="module")
def judged(warm_judge: None, hosts: Path) -> Iterator[Judged]:
    with tempfile.TemporaryDirectory(prefix="ridgeline-compare-", dir="/tmp") as name:
        os.chmod(name, 0o755)  # confined code may become another user
        shutil.copytree(hosts, Path(name, "host"))
        judged = Judged(Path(name))
        yield judged
        judged.evaluator.close()


needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@needs_gxx
@pytest.mark.parametrize("place", [0, 1])
def test_kernel_that_crashes_only_where_it_is_compared_is_a_finding_of_that_kernel(judged: Judged, place: int) -> None:
    honest, crashing = judged.built("honest", HONEST), judged.built("crashing", CRASHES_IN_LONG_LOOPS)
    verified = judged.evaluator.verify(VerifyTask(problem=judged.problem, candidate=crashing[0], build=crashing[1]))
    assert verified.status is Status.OK, verified.reason
    pair = (crashing, honest) if place == 0 else (honest, crashing)
    found = judged.compare(*pair)
    assert isinstance(found, FailedComparison)
    assert (found.at_fault, found.finding.code, found.status) == (place, ReasonCode.CRASHED, Status.RUNTIME_ERROR)


@needs_gxx
@pytest.mark.timing  # a busy machine may put two clocks apart
def test_comparison_whose_runner_was_killed_from_outside_is_made_once_more(
    judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, killed = RunnerProcess.loop, list[int]()

    def kill_once(runner: RunnerProcess, sets: Sequence[int]) -> object:
        if not killed:
            killed.append(runner.pid)
            os.kill(runner.pid, signal.SIGKILL)
        return loop(runner, sets)

    monkeypatch.setattr(RunnerProcess, "loop", kill_once)
    monkeypatch.setattr(judged.evaluator._session(judged.problem), "_cost", LoopCost())  # no loop of an empty library
    honest = judged.built("honest", HONEST)
    assert isinstance(judged.compare(honest, honest), Comparison)
    assert killed


SLOW = "#include <unistd.h>\n" + RELU.replace("CHECK", "usleep(40000);")
SLOW_WHEN_TIMED = "#include <unistd.h>\n" + RELU.replace(
    "CHECK", "static int calls = 0; if (++calls > 200) usleep(40000);"
)


@needs_gxx
def test_a_kernel_that_takes_too_long_in_all_ends_within_the_deadline_as_its_own_verdict(
    judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def allow(
        seconds: float,
    ) -> None:  # many where the kernel is to be in time: its runner's start on a busy machine counts
        monkeypatch.setattr(evaluation_limit, "LEAST_S", seconds)

    monkeypatch.setattr(evaluation_limit, "CALLS", 0)
    allow(0.8)
    slow, late = judged.built("slow", SLOW), judged.built("late", SLOW_WHEN_TIMED)
    verified = judged.evaluator.verify(VerifyTask(problem=judged.problem, candidate=slow[0], build=slow[1]))
    assert (verified.status, verified.reason_code) == (Status.TIMEOUT, ReasonCode.EVALUATION_DEADLINE), verified.reason
    task = VerifyTask(problem=judged.problem, candidate=late[0], build=late[1])
    allow(120.0)
    verified = judged.evaluator.verify(task)
    assert verified.status is Status.OK, verified.reason
    allow(0.8)
    timing = judged.evaluator.benchmark(
        BenchmarkTask(problem=judged.problem, candidate=late[0], build=late[1], verdict=verified)
    )
    assert (timing.status, timing.reason_code) == (Status.TIMEOUT, ReasonCode.EVALUATION_DEADLINE), timing.reason
    honest = judged.built("honest", HONEST)
    allow(120.0)
    assert judged.evaluator.verify(replace(task, candidate=honest[0], build=honest[1])).status is Status.OK


@needs_gxx
def test_a_verification_has_time_for_each_trial_of_its_reference(
    judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[float, float]] = []

    class Noted(Deadline):
        def __init__(self, limit_s: float, step: str, *, further_s: float = 0.0) -> None:
            super().__init__(limit_s, step, further_s=further_s)
            given.append((limit_s, further_s))

    monkeypatch.setattr(evaluator, "Deadline", Noted)
    candidate, build = judged.built("honest", HONEST)
    judge = judged.evaluator._session(judged.problem).judge
    monkeypatch.setattr(judge, "problem", replace(judge.problem, trials=(*judge.problem.trials, *["nominal_0"] * 11)))
    task = VerifyTask(problem=judged.problem, candidate=candidate, build=build, own_secrets=2)
    assert judged.evaluator.verify(task).status is Status.OK
    trials, call_timeout_s = len(judge.problem.trials), judged.problem.call_timeout_s
    assert trials > evaluation_limit.LEAST_TRIALS
    planned_s = evaluation_limit.verify_limit_s(call_timeout_s, trials, draws=2)
    assert given == [(planned_s, evaluation_limit.verify_limit_s(call_timeout_s, trials, draws=3))]


STAGED = """
void run(const float* x, float* out, void*) {
  RIDGELINE_STAGE(compare);
  for (int i = 0; i < 4096; ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
"""


@needs_gxx
def test_profile_by_the_evaluator_has_the_stages_of_a_build_that_is_never_judged(judged: Judged) -> None:
    candidate, build = judged.built("staged", STAGED)
    task = ProfileTask(problem=judged.problem, candidate=candidate, build=build)
    assert judged.evaluator.profile(task).stages == ()
    found = judged.evaluator.profile(replace(task, profile_build=judged.profiled(candidate)))
    assert [(stage.name, stage.share) for stage in found.stages] == [("compare", 1.0)]
    assert "Its stages: compare 100%" in found.paragraph
