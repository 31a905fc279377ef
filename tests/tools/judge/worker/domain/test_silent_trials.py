"""Inputs that are silent after a first part, or before a last one, by as much as the reference's own rounding allows."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.grading.compare import compare
from ridgeline.tools.judge.worker.inputs.transforms import silent
from ridgeline.tools.records.trial_names import SILENT, SILENT_EARLY, SILENT_LATE

STEPS = 128


def decaying(kept: float, order: str = "x") -> Made:
    body = (
        "state = torch.zeros_like(x[0])",
        f"for step in {order}:",
        f"    state = {kept} * state + step",
        "return state",
    )
    return made("x", f"torch.randn({STEPS}, 16)", *body)


def error_of(found: Made, trial: str, kept: float, *, last: int, is_reversed: bool = False) -> float:
    """Return the error of the state that the last steps alone give."""
    case = found.book.case(trial)
    steps = case.inputs[0].double().flip(0) if is_reversed else case.inputs[0].double()
    state = torch.zeros_like(steps[0])
    for step in steps[-last:]:
        state = kept * state + step
    return compare(state, case.expected[0]).errors.overall


def test_what_a_constant_damping_forgets_beside_later_steps_counts_where_those_are_silent() -> None:
    found = decaying(0.75)
    assert error_of(found, "nominal_0", 0.75, last=STEPS // 2) < 1e-7
    assert error_of(found, SILENT_LATE, 0.75, last=STEPS // 2) > 0.9
    assert error_of(found, SILENT_LATE, 0.75, last=STEPS) == 0


def test_a_recurrence_from_the_end_needs_its_first_steps_where_the_others_are_silent() -> None:
    found = decaying(0.75, "x.flip(0)")
    assert error_of(found, SILENT_EARLY, 0.75, last=STEPS // 2, is_reversed=True) > 0.9


def test_less_is_silent_where_the_state_would_be_gone_by_then() -> None:
    found = decaying(0.1)  # after 96 steps 1e-96, which float32 does not hold
    assert found.source.sizes.get(SILENT_LATE, 1.0) < 4
    assert decaying(0.75).source.sizes[SILENT_LATE] == 4


def test_no_state_is_asked_for_that_a_kernel_may_flush_to_zero() -> None:
    found = decaying(0.4)  # after 96 steps 1e-38, which float32 holds
    assert 1 < found.source.sizes[SILENT_LATE] < 4
    assert found.book.case(SILENT_LATE).expected[0].rms > 2.0**-100


@pytest.mark.parametrize("draw", ["torch.randint(9, (8, 8))", "torch.randn(8, 8) > 0"])
def test_whole_numbers_and_masks_are_never_silent(draw: str) -> None:
    assert not set(SILENT) & set(made("x", draw, "return x.float().sum(-1)").domain.names)


@pytest.mark.parametrize(
    ("at_end", "kept"), [(False, (slice(2), slice(3))), (True, (slice(-2, None), slice(-3, None)))]
)
def test_a_part_of_every_dimension_stays(at_end: bool, kept: tuple[slice, slice]) -> None:
    tensor = torch.rand(8, 10) + 1
    quiet = silent(tensor, 1 / 4, at_end=at_end)
    assert torch.equal(quiet[kept], tensor[kept]) and int((quiet != 0).sum()) == 6
