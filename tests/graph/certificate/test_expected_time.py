"""What a viewer is told of the time that a certificate may take."""

from __future__ import annotations

import pytest

from ridgeline.graph.certificate.expected_time import COMPARISON, PYTORCH_S, StepCost, expected_s, left_s
from ridgeline.graph.certificate.steps import CERTIFICATE_STEPS
from ridgeline.tools.records.results import Build, Evaluation, Timing, Verdict
from ridgeline.tools.records.vocabulary import Purpose, Status

EVALUATION = Evaluation(
    key="k",
    candidate_id="r1i0v0a0",
    purpose=Purpose.SEARCH,
    status=Status.OK,
    build=Build(key="b", status=Status.OK, build_s=0.6),
    verdict=Verdict(status=Status.OK, verify_s=4.7),
    timing=Timing(status=Status.OK, median_ms=1.0, samples=50, benchmark_s=24.5),
)


def test_the_steps_of_a_measured_certificate_are_expected_about_as_long_as_they_took() -> None:
    took_s = {"build": 1, "verify": 25, "sanitize": 13, "time": 71, "compare": 25, "own_work": 0, "other_shapes": 23}
    costs = {step.name: step.cost for step in CERTIFICATE_STEPS}
    for step, seconds in took_s.items():
        assert costs[step].expected_s(EVALUATION) == pytest.approx(seconds, rel=0.2, abs=1), step
    assert expected_s(EVALUATION, costs.values()) == pytest.approx(PYTORCH_S + sum(took_s.values()), rel=0.1)


def test_comparisons_with_other_kernels_come_on_top() -> None:
    assert expected_s(EVALUATION, [], comparisons=2) == pytest.approx(2 * COMPARISON * 24.5)


def test_the_steps_that_are_left_are_expected_at_the_pace_of_those_that_are_done() -> None:
    done, left = StepCost(timings=3.0), [StepCost(fixed_s=10.0), StepCost()]
    assert left_s(EVALUATION, [], left) == 10.0
    assert left_s(EVALUATION, [(done, 3 * 24.5)], left) == pytest.approx(10.0)
    assert left_s(EVALUATION, [(done, 3 * 3 * 24.5), (StepCost(), 0.5)], left) == pytest.approx(28.0, rel=0.1)
    assert left_s(EVALUATION, [(done, 1.0)], left) == 10.0, "a stored step says nothing of the others"
    assert left_s(EVALUATION, [(StepCost(builds=1.0), 6.0)], left) < 16.0, "few seconds say little"
    assert left_s(EVALUATION, [(done, 9.0)], []) == 0.0
