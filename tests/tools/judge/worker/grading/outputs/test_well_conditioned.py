"""One badly conditioned element widens no limit of the others."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged, sums_by_lanes

from ridgeline.tools.judge.worker.grading.grades import Grade
from ridgeline.tools.judge.worker.grading.outputs.expected import expect
from ridgeline.tools.judge.worker.grading.outputs.small_rows import Moved
from ridgeline.tools.judge.worker.grading.outputs.well_conditioned import well_conditioned
from ridgeline.tools.measure.grade_words import explain_grade
from ridgeline.tools.records.error_map import Measure
from ridgeline.tools.records.precision import FEWEST_CONDITIONED, NOMINAL_GATE, WELL_CONDITIONED_SHARE
from ridgeline.tools.records.vocabulary import PrecisionClass

FP32 = PrecisionClass.FP32
ROWS, FEATURES = 128, 16
INPUTS = f"torch.randn({ROWS}, {FEATURES}), torch.randn({FEATURES}, {ROWS}), torch.randn({ROWS}, {ROWS})"
QUOTIENT = "return (2 + torch.sin(u)) / (x @ w)"
TRIALS = ("nominal_0", "nominal_1", "row_scaled", "outliers", "mixture")


def quotient(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    products = (x[:, None] * w.T).reshape(-1, FEATURES)
    return (2 + torch.sin(u)) * sums_by_lanes(products).reshape(u.shape).reciprocal()


def coarse(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Make a sine that is 2e-4 off."""
    return (2 + torch.sin(u) + 2e-4) / (x @ w)


@pytest.fixture(scope="module")
def judged() -> Judged:
    return Judged("x, w, u", INPUTS, QUOTIENT)


def grade_of(judged: Judged, output: torch.Tensor) -> Grade:
    return judged.examiner.grade_reference((output,))


@pytest.mark.parametrize("trial", TRIALS)
def test_elements_beside_a_denominator_next_to_zero_are_held_to_what_they_lose_themselves(
    judged: Judged, trial: str
) -> None:
    assert judged.passes(trial, lambda x, w, u: (2 + torch.sin(u)) / (x @ w))
    assert judged.passes(trial, quotient)
    assert not judged.passes(trial, coarse)


def test_without_that_part_the_whole_limits_would_let_it_pass(judged: Judged) -> None:
    case = judged.book.case("nominal_0")
    own = judged.book.own_errors(case, FP32)
    assert own is not None and own[0].overall > NOMINAL_GATE[FP32]
    grade = grade_of(judged, coarse(*case.inputs))
    assert grade.gate.admits(grade.errors) and not grade.passed


def off_at_the_largest(judged: Judged, factor: float) -> torch.Tensor:
    """Return PyTorch's output, at its largest element off by this x the furthest that other last bits move that element."""
    case = judged.book.case("nominal_0")
    want = case.expected[0].values
    place = tuple(int(i[0]) for i in (want.abs() == want.abs().max()).nonzero(as_tuple=True))
    moves = [float((each - want).abs()[place]) for each in judged.book.moved(case, 0, FP32)]
    output = judged.reference.run(case.inputs)[0].double()
    output[place] = want[place] + factor * max(moves)
    return output


def test_the_largest_element_may_be_as_far_off_as_twice_what_other_last_bits_do_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = Judged("x, w", f"torch.randn(256, {FEATURES}), torch.randn({FEATURES}, 256)", "return torch.tan(x @ w)")
    assert grade_of(judged, off_at_the_largest(judged, 1.9)).passed
    assert not grade_of(judged, off_at_the_largest(judged, 2000.0)).passed
    monkeypatch.setattr(judged.examiner._grader, "_beside_badly_conditioned", lambda *_: None)
    assert not grade_of(judged, off_at_the_largest(judged, 1.9)).passed, "its limit alone would refuse it"


def test_of_two_runs_the_well_conditioned_elements_have_to_be_alike(judged: Judged) -> None:
    case = judged.book.case("nominal_0")
    output = judged.reference.run(case.inputs)[0]
    other = torch.where(output.abs() == output.abs().max(), 1.1 * output, output)
    judged.book.well_conditioned(case, 0, FP32)
    grader = judged.examiner._grader
    assert grader.repeat_difference((other,), (output,), case) == 0.0
    assert grader.repeat_difference((output + 1,), (output,), case) > NOMINAL_GATE[FP32]


def test_a_verdict_names_the_part_and_its_limit(judged: Judged) -> None:
    case = judged.book.case("nominal_0")
    grade = grade_of(judged, coarse(*case.inputs))
    assert grade.nearest is not None and grade.nearest.measure is Measure.WELL_CONDITIONED
    assert 1e-5 < grade.nearest.figure < 1e-3
    graded = judged.examiner._graded(case, (coarse(*case.inputs),))
    words = explain_grade(graded, FP32).reason
    assert "the error of the well-conditioned elements" in words


def test_nothing_is_asked_of_an_output_within_the_nominal_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = Judged("x", "torch.randn(64, 64)", "return torch.sin(x)")

    def asked(*_: object) -> Iterator[None]:
        raise AssertionError("an honest output was asked for")

    monkeypatch.setattr(judged.book, "honest", asked)
    assert judged.passes("nominal_0", torch.sin)
    assert judged.passes("nominal_0", lambda x: torch.sin(x) + 0.9e-5 * 0.7)


def test_long_plain_sums_lose_in_the_part_what_they_lose_as_a_whole() -> None:
    judged = Judged("x", f"torch.rand({FEWEST_CONDITIONED}, 65536)", "return x.sum(-1)")
    lost = judged.book.case("nominal_0")
    output = sums_by_lanes(lost.inputs[0])
    assert grade_of(judged, output).errors.overall > NOMINAL_GATE[FP32]
    assert grade_of(judged, output).passed


def moved(output: torch.Tensor, *, by_operands: bool = True) -> Moved:
    return Moved(output=output, allowed=1.0, by_operands=by_operands)


def test_the_part_is_what_honest_outputs_move_least() -> None:
    want = torch.arange(1024.0, dtype=torch.float64)
    other = want + torch.where(torch.arange(1024) % 32 == 7, 1e-2, 1e-6)
    part = well_conditioned(expect(want), [moved(other)])
    assert part is not None and WELL_CONDITIONED_SHARE * 1024 <= int(part.chosen.sum()) < 1024
    assert part.own * part.scale == pytest.approx(1e-6 * (1024 * 31 / 32) ** 0.5, rel=1e-3)
    assert part.error(other) == pytest.approx(part.own) and part.error(want + 1) > 1e-3


def test_few_elements_and_those_of_which_nothing_can_be_told_have_no_part() -> None:
    few = torch.randn(FEWEST_CONDITIONED - 1, dtype=torch.float64)
    many = torch.randn(FEWEST_CONDITIONED, dtype=torch.float64)
    assert well_conditioned(expect(few), [moved(few + 1e-6)]) is None
    assert well_conditioned(expect(many), [moved(many + 1e-6), None]) is None
    assert well_conditioned(expect(many), [moved(many + 1e-6)]) is not None


def test_what_no_run_on_other_operands_moves_is_not_of_the_part() -> None:
    want = torch.randn(1024, dtype=torch.float64)
    native = moved(want + 1e-6, by_operands=False)
    assert well_conditioned(expect(want), [native, moved(want)]) is None
    half = torch.arange(1024) < 512
    part = well_conditioned(expect(want), [native, moved(want + 1e-7 * half)])
    assert part is not None and bool(part.chosen.any()) and not bool(part.chosen[~half].any())


def test_what_is_no_number_in_an_honest_output_is_not_of_the_part() -> None:
    want = torch.randn(1024, dtype=torch.float64)
    lost = want + 1e-9
    lost[::64] = float("nan")
    part = well_conditioned(expect(want), [moved(lost)])
    assert part is not None and not bool(part.chosen[::64].any()) and math.isfinite(part.own)


def test_other_ways_are_asked_while_the_error_is_beyond_half_of_the_limit() -> None:
    want = torch.randn(1024, dtype=torch.float64)
    part = well_conditioned(expect(want), [moved(want + 1e-6)])
    assert part is not None
    output = want + 15e-6  # beside a limit of 16 times what the honest one is off
    lost = [part.own, 4 * part.own, 100 * part.own]
    asked: list[int] = []

    def lost_another_way(way: int) -> float:
        asked.append(way)
        return lost[way]

    use = part.use(output, FP32, 1.0, lost_another_way)
    assert asked == [0, 1] and use.factor == pytest.approx(15 / 64, rel=1e-3)
