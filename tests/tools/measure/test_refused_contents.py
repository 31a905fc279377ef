"""A measurement begins anew without the kinds of contents that the reference refuses; the judge decides which."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.candidates import candidate_of
from tests.tools.conftest import without_tensors
from tests.tools.measure.answering import Answering

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import BenchmarkTask, CompileTask, DescribeTask
from ridgeline.tools.errors import ContentsRefusedError
from ridgeline.tools.judge.messages import LeaveOut
from ridgeline.tools.judge.replies import LeftOut
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.refused_contents import with_left_out, within_domain
from ridgeline.tools.records.problem import SkippedTrial, Target
from ridgeline.tools.records.results import Timing, Verdict
from ridgeline.tools.records.vocabulary import Interface, Label, PrecisionClass, ReasonCode, Status
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.sandbox.sandbox import Sandbox

KINDS = ("shifted", "row_scaled", "outliers")


class Refusing(Answering):
    """A judge whose reference refuses these kinds, one at each look."""

    def __init__(self, *refused: str) -> None:
        super().__init__(n_sets=3)
        self.problem: Any = without_tensors()
        self.left = list(refused)
        self.kinds = list(KINDS)

    def leave_out(self, _request: LeaveOut) -> LeftOut:
        found = [self.left.pop(0)] if self.left else []
        self.kinds = [kind for kind in self.kinds if kind not in found]
        skipped = tuple(SkippedTrial(name=f"timed {kind}", reason="forward() raised ValueError") for kind in found)
        return LeftOut(left_out=skipped, timed_kinds=tuple(self.kinds))


def failing(errors: Sequence[Exception], judge: Any) -> Callable[[], tuple[str, ...]]:
    waiting = list(errors)

    def measure() -> tuple[str, ...]:
        if waiting:
            raise waiting.pop(0)
        return judge.problem.timed_kinds  # type: ignore[no-any-return]

    return measure


REFUSED, CRASHED = ContentsRefusedError("refuses contents"), RunnerFailure(ReasonCode.CRASHED, "killed by SIGABRT")


@pytest.mark.parametrize("errors", [[REFUSED, REFUSED], [CRASHED, REFUSED]])
def test_a_measurement_begins_anew_without_what_the_judge_leaves_out(errors: list[Exception]) -> None:
    judge: Any = Refusing("row_scaled", "outliers")
    again: list[int] = []
    assert within_domain(judge, failing(errors, judge), before_again=lambda: again.append(1)) == ("shifted",)
    assert len(again) == 2
    timing = with_left_out(Timing(status=Status.OK, median_ms=1.0, labels=(Label.LAUNCH_BOUND,)), judge)
    assert [each.name for each in timing.skipped] == ["timed row_scaled", "timed outliers"]
    assert timing.labels == (Label.LAUNCH_BOUND, Label.TRIAL_SKIPPED)


@pytest.mark.parametrize("error", [REFUSED, CRASHED])
def test_where_the_reference_takes_every_kind_a_failure_stays_what_it_is(error: Exception) -> None:
    judge: Any = Refusing("row_scaled")
    with pytest.raises(type(error)):
        within_domain(judge, failing([CRASHED, error], judge))
    assert with_left_out(Timing(status=Status.OK, median_ms=1.0), Refusing()) == Timing(status=Status.OK, median_ms=1.0)  # type: ignore[arg-type]


REFERENCE = """import torch
from pathlib import Path
class Model(torch.nn.Module):
    def forward(self, x):
        if Path({switch!r}).exists() and float(x.abs().max()) > 100:
            {refuse}
        return torch.relu(x)
def get_inputs():
    return [torch.randn(64, 64)]
"""
RELU = "for (int i = 0; i < 4096; ++i) { if (x[i] > LIMIT) __builtin_trap(); out[i] = x[i] > 0 ? x[i] : 0; }"
SOURCE = "void run(const float* x, float* out, void*) { BODY }"


@pytest.mark.thorough
@pytest.mark.any_tier
@pytest.mark.long
@pytest.mark.usefixtures("warm_judge")
@pytest.mark.parametrize(
    ("refuse", "limit"),
    [
        ("raise ValueError('out of range')", 1e9),
        pytest.param("raise RuntimeError('out of range')", 1e9, marks=pytest.mark.slow),
        pytest.param("assert False", 100, marks=pytest.mark.slow),
    ],
)
def test_a_reference_that_asserts_a_range_is_timed_without_what_leaves_it(
    sandbox: Sandbox, tmp_path: Path, hosts: Path, refuse: str, limit: float
) -> None:
    """It begins to refuse outliers once it has been loaded: by contents alone it would do so in some runs."""
    shutil.copytree(hosts, tmp_path / "host")
    switch = tmp_path / "refuses"
    device = detect_device("cpu")
    target = Target(
        name="p",
        reference_source=REFERENCE.format(switch=str(switch), refuse=refuse),
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=device,
    )
    source = SOURCE.replace("BODY", RELU).replace("LIMIT", f"{limit:.1f}f")
    candidate = candidate_of(source, name="relu")
    evaluator = Evaluator(device, cache_dir=tmp_path, sandbox=sandbox)
    try:
        problem = target.described(evaluator.describe(DescribeTask(problem=target)))
        assert not problem.description.skipped_trials
        switch.touch()
        compiler = Compiler(sandbox, tmp_path, device)
        [build] = asyncio.run(compiler.compile_batch([CompileTask(problem=problem, candidate=candidate)]))
        verdict = Verdict(status=Status.OK, precision_class=PrecisionClass.FP32)
        task = BenchmarkTask(problem=problem, candidate=candidate, build=build, verdict=verdict)
        timing = evaluator.benchmark(task)
    finally:
        evaluator.close()
    assert timing.status is Status.OK, timing.reason
    names = [each.name for each in timing.skipped]
    assert "timed outliers" in names and set(names) <= {"timed outliers", "timed row_scaled"}
    assert Label.TRIAL_SKIPPED in timing.labels
