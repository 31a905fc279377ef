"""Inputs that hold a number after a first part, or before a last one: that beside which the reference's state lasts."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.records.trial_names import HELD, HELD_EARLY, HELD_LATE, QUIET, TIMED

STEPS = 160


def level(refill: str, order: str = "x", draw: str = f"torch.rand({STEPS}, 16)", output: str = "level") -> Made:
    body = (
        "level, levels = torch.ones_like(x[0]), []",
        f"for demand in {order}:",
        f"    level = torch.clamp(level + {refill} - demand, 0, 1)",
        "    levels.append(level)",
        f"return {output}",
    )
    return made("x", draw, *body)


def numbers_of(found: Made) -> dict[str, float]:
    """Return the numbers that are fixed: of the mean and the quantiles of these inputs none is one of them."""
    return {trial: rule(torch.arange(-700.0, 1000.0) / 1000) for trial, rule in found.source.held.items()}


def error_of(found: Made, trial: str, refill: float, *, last: int, is_reversed: bool = False) -> float:
    """Return the error of the level that the last steps alone give."""
    case = found.book.case(trial)
    steps = case.inputs[0].double().flip(0) if is_reversed else case.inputs[0].double()
    state = torch.ones_like(steps[0])
    for step in steps[-last:]:
        state = (state + refill - step).clamp(0, 1)
    return compare(state, case.expected[0]).errors.overall


def test_a_level_lasts_beside_the_number_that_refills_it() -> None:
    found = level("0.375", draw=f"torch.rand({STEPS}, 16) * 0.75")
    assert numbers_of(found) == {HELD_LATE: 0.375} and HELD_LATE in found.domain.names
    for trial in ("nominal_0", *(name for name in found.domain.names if name in QUIET and name not in HELD)):
        assert error_of(found, trial, 0.375, last=STEPS * 5 // 8) < 1e-6
    assert error_of(found, HELD_LATE, 0.375, last=STEPS * 5 // 8) > 0.1
    assert error_of(found, HELD_LATE, 0.375, last=STEPS) < 1e-6


def test_a_level_from_the_end_lasts_beside_it_where_the_first_steps_hold_it() -> None:
    found = level("0.5", "x.flip(0)")
    assert numbers_of(found) == {HELD_EARLY: 0.5} and HELD_EARLY in found.domain.names
    assert error_of(found, HELD_EARLY, 0.5, last=STEPS * 5 // 8, is_reversed=True) > 0.1


def test_levels_of_every_step_count_where_the_last_ones_last() -> None:
    found = level("0.375", draw=f"torch.rand({STEPS}, 16) * 0.75", output="torch.stack(levels)")
    assert numbers_of(found)[HELD_LATE] == 0.375 and HELD_LATE in found.domain.names


def test_a_scalar_is_one_of_the_numbers() -> None:
    body = (
        "level = torch.ones_like(x[0])",
        "for demand in x:",
        "    level = torch.clamp(level + refill - demand, 0, 1)",
    )
    found = made("x, refill", f"torch.rand({STEPS}, 16) * 0.7, float('.35')", *body, "return level")
    assert numbers_of(found) == {HELD_LATE: 0.35} and HELD_LATE in found.domain.names


@pytest.mark.parametrize(
    "body",
    [
        "return torch.relu(x - 0.25)",
        "return x @ x.mT",
        "return torch.softmax(x, -1)",
        "return torch.nn.functional.layer_norm(x, (64,))",
        "return torch.nn.functional.layer_norm(x, (64,)) @ x.mT",
        "return x.cumsum(0)",
        "return torch.nn.functional.conv1d(x[:, None], x[:4, None, :3]).clamp(0, 1)",
        "return torch.softmax(x @ x.mT / 8, -1) @ x",
    ],
)
def test_what_depends_on_the_same_places_beside_zeros_has_no_such_trial(body: str) -> None:
    found = made("x", "torch.randn(64, 64)", body)
    assert not found.source.held and not set(HELD) & set(found.domain.names)


def test_whole_numbers_are_never_held() -> None:
    assert not made("x", "torch.randint(9, (64, 8))", "return x.clamp(1, 3).prod(0)").source.held


def test_a_number_that_the_reference_refuses_is_left_out() -> None:
    refused = "torch.clamp(level + 0.375 - demand, 0, 1 if (x == 0.375).sum() == 0 else float('nan'))"
    body = ("level = torch.ones_like(x[0])", "for demand in x:", f"    level = {refused}", "return level")
    assert 0.375 not in numbers_of(made("x", f"torch.rand({STEPS}, 16) * 0.75", *body)).values()


def test_a_state_that_is_chaotic_beside_the_number_has_no_such_trial() -> None:
    body = (
        "state = torch.full_like(x[0], 0.3)",
        "for step in x:",
        "    state = torch.where(step == 1, 3.9 * state * (1 - state), (step.sin() + 1) / 2)",
        "return state",
    )
    found = made("x", f"torch.randn({STEPS}, 16)", *body)
    assert numbers_of(found)[HELD_LATE] == 1 and HELD_LATE not in found.domain.names


def test_it_is_a_whole_trial_of_timed_blocks() -> None:
    assert set(HELD) <= set(TIMED)
