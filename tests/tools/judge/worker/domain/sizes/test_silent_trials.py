"""Inputs that are silent after a first part, or before a last one, by as much as the reference's own rounding allows."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.inputs.values.transforms import silent
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


MEMORY = (
    "place = torch.arange(len(q))",
    "decay = (0.75 ** (place[:, None] - place).clamp(min=0)).tril().to(q.dtype)",
    "return (q @ k.mT * decay) @ v",
)


def test_a_memory_that_queries_read_is_read_by_faint_ones() -> None:
    """Beside zeros nothing is read of it."""
    found = made("q, k, v", ", ".join([f"torch.randn({STEPS}, 16)"] * 3), *MEMORY)
    assert found.source.faint == {SILENT_LATE} and SILENT_LATE in found.domain.names

    def rows_off(trial: str, window: int) -> int:
        case = found.book.case(trial)
        q, k, v = (t.double() for t in case.inputs)
        place = torch.arange(STEPS)
        ago = (place[:, None] - place).clamp(min=0)
        decay = (0.75**ago).tril().double() * (ago < window)
        off = torch.linalg.vector_norm((q @ k.mT * decay) @ v - case.expected[0].values, dim=1)
        return int((off > 0.1 * torch.linalg.vector_norm(case.expected[0].values, dim=1)).sum())

    assert rows_off("nominal_0", STEPS // 2) == rows_off(SILENT_LATE, STEPS) == 0
    assert rows_off(SILENT_LATE, STEPS // 2) >= STEPS // 8


def test_where_zeros_show_as_much_inputs_are_zero() -> None:
    """A latch that opens beside any number above 0 would open beside a small one too."""
    latch = (
        "state = torch.zeros_like(x[0])",
        "for step in x:",
        "    state = torch.where(step > 0, step, state)",
        "return state",
    )
    assert not made("x", f"torch.randn({STEPS}, 16)", *latch).source.faint
    assert not decaying(0.75).source.faint


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


@pytest.mark.parametrize(
    ("dtype", "faint"), [(torch.float32, 2.0**-20), (torch.bfloat16, 2.0**-20), (torch.float16, 2.0**-6)]
)
def test_what_is_faint_is_its_own_numbers_times_a_power_of_two(dtype: torch.dtype, faint: float) -> None:
    tensor = (torch.rand(8) + 1).to(dtype)
    quiet = silent(tensor, 1 / 4, at_end=False, is_faint=True)
    assert torch.equal(quiet[:2], tensor[:2]) and torch.equal(quiet[2:], tensor[2:] * faint)
