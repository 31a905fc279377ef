"""Kernels as an evaluator judges them: crashes in loops, runners killed from outside, deadlines, stages."""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.candidates import candidate_of
from tests.tools.local.test_evaluator import request

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import (
    BenchmarkTask,
    CompareTask,
    CompileTask,
    DescribeTask,
    ProfileTask,
    VerifyTask,
)
from ridgeline.tools.local import evaluator
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.request_cost import LoopCost
from ridgeline.tools.records import evaluation_limit
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Build, Comparison, FailedComparison
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status
from ridgeline.tools.runner.deadline import Deadline
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

pytestmark = [pytest.mark.long, pytest.mark.sandboxed]
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

RELU = (
    "void run(const float* x, float* out, void*) {CHECK for (int i = 0; i < 4096; ++i) out[i] = x[i] > 0 ? x[i] : 0;}"
)


HONEST = RELU.replace("CHECK", "")


CRASHES_IN_LONG_LOOPS = RELU.replace("CHECK", " static int calls = 0; if (++calls > 2000) __builtin_trap();")


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
def test_runners_of_a_comparison_are_told_as_a_comparison_s_in_the_log(
    judged: Judged, caplog: pytest.LogCaptureFixture
) -> None:
    honest, crashing = judged.built("honest", HONEST), judged.built("crashing", CRASHES_IN_LONG_LOOPS)
    caplog.set_level("INFO", logger="ridgeline.tools.runner.pool")
    judged.compare(crashing, honest)
    told = [record.args[-3:] for record in caplog.records if "starts a runner" in record.msg]
    assert told == [(candidate.id, "search", "CompareTask") for candidate, _ in (crashing, honest)]


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
