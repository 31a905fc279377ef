"""Which inputs have tiny numbers, and how tiny: as far as the reference is a number there that its own type knows."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.domain import sign_trials
from ridgeline.tools.judge.worker.domain.conditioning import LEFT_TO_ROUNDING, room_of
from ridgeline.tools.judge.worker.grading.cases.case import Case, non_finite_of
from ridgeline.tools.judge.worker.inputs.arrangements.tiny_numbers import with_tiny_numbers
from ridgeline.tools.records.precision import Errors
from ridgeline.tools.records.trial_names import NOMINAL, SOLID, TINY_NUMBERS
from ridgeline.tools.records.vocabulary import PrecisionClass

INPUT = "torch.rand(64, 64) + 0.5"


def most_of(found: Made) -> dict[int, float]:
    """Return how often the numbers of each input are halved at most."""
    arrangement: Any = found.source.arrangements.get(TINY_NUMBERS)
    assert bool(arrangement) == (TINY_NUMBERS in found.domain.names)
    return dict(arrangement.keywords["halvings"]) if arrangement else {}


@pytest.mark.parametrize(
    ("body", "most"),
    [
        ("x * 2", 44.0),
        ("x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()", 44.0),
        ("1 / (x.sqrt() + 1e-8)", 44.0),
        ("1 / x**4", 24.0),
        ("1 / x**8", 12.0),
    ],
)
def test_numbers_are_as_tiny_as_leaves_the_output_a_number_of_its_type(body: str, most: float) -> None:
    assert most_of(made("x", INPUT, f"return {body}")) == {0: most}


@pytest.mark.parametrize(
    ("body", "most", "zeros"),
    [
        ("x * 2", {0: 44.0, 1: 44.0}, {0, 1}),
        ("x + (y / (y.abs().amax(-1, keepdim=True) / 127).clamp(min=1e-8)).round()", {0: 44.0, 1: 44.0}, {0, 1}),
        ("x + y / y.norm(dim=-1, keepdim=True)", {0: 44.0, 1: 44.0}, {0}),
        ("x + torch.atan2(y, -y)", {0: 44.0, 1: 44.0}, {0}),
        ("x.log() * y", {0: 44.0, 1: 44.0}, {1}),
        ("(x == 0).sum(-1) / (y > 0)", {0: 44.0, 1: 44.0}, {0}),
    ],
)
def test_rows_are_zeros_where_the_output_stays_a_number_that_no_zero_s_sign_decides_on(
    body: str, most: dict[int, float], zeros: set[int]
) -> None:
    found = made("x, y", f"{INPUT}, {INPUT}", f"return {body}")
    arrangement: Any = found.source.arrangements[TINY_NUMBERS]
    assert most_of(found) == most and arrangement.keywords["zeros"] == zeros


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this processor flushes nothing")
def test_numbers_are_no_tinier_than_leaves_those_on_the_way_to_a_kernel_that_flushes_them_to_zero() -> None:
    rows = "torch.rand(4096, 16) + 0.5"
    assert most_of(made("x", rows, "return x / x.pow(3).sum(-1, keepdim=True).pow(1 / 3)")) == {0: 24.0}
    assert most_of(made("x", rows, "return x / x.pow(2).sum(-1, keepdim=True).pow(1 / 2)")) == {0: 44.0}


def test_what_the_reference_refuses_stays_beside_what_it_takes() -> None:
    found = made("x, y", f"{INPUT}, {INPUT}", "assert float(y.min()) > 0.4", "return x * y")
    assert most_of(found) == {0: 44.0} and not any(name.startswith(TINY_NUMBERS) for name in found.domain.skipped)


def test_a_reference_that_takes_no_tiny_number_has_no_such_trial() -> None:
    assert most_of(made("x", INPUT, "assert float(x.min()) > 0.4", "return x * 2")) == {}
    assert most_of(made("x", "torch.randint(9, (64, 64))", "return x * 2")) == {}


def test_outputs_that_tiny_numbers_leave_to_rounding_are_refused() -> None:
    assert most_of(made("x", INPUT, "return 1 / (x.exp() - 1)")).get(0, 0.0) < 44.0


def test_the_reference_stays_within_a_quarter_of_its_own_type_s_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Any = made("x", INPUT, "return x * 2")
    case = found.book.case(TINY_NUMBERS)

    def errors(_reference: object, of: Case) -> tuple[tuple[Errors], tuple[Errors]]:
        is_nominal = of.name == NOMINAL[0]
        return (room_of(PrecisionClass.TF32, 0.0),), (room_of(PrecisionClass.FP32, 0.0 if is_nominal else 0.5),)

    monkeypatch.setattr(sign_trials, "errors_by_rounding", errors)
    monkeypatch.setattr(sign_trials, "_flushed_errors", lambda *_: None)
    objection_to = functools.partial(sign_trials.objection_to_signs, None, found.book)
    assert objection_to(case, non_finite_of(case)) == LEFT_TO_ROUNDING
    assert not objection_to(replace(case, name=SOLID), non_finite_of(case))


def judged(names: str, body: str) -> Judged:
    """Return a reference of one input that has such a trial."""
    found = Judged(names, "torch.randn(128, 64)", f"return {body}")
    found.source.arrangements[TINY_NUMBERS] = functools.partial(with_tiny_numbers, halvings={0: 44.0})
    return found


def test_an_epsilon_within_a_root_beside_it_and_left_out_are_told_apart() -> None:
    found = judged("x", "x / (x.square().mean(-1, keepdim=True) + 1e-8).sqrt()")

    def mean(x: torch.Tensor) -> torch.Tensor:
        return x.square().mean(-1, keepdim=True)

    trials = ("nominal_0", "row_scaled", TINY_NUMBERS)
    assert found.refused_in(lambda x: x * torch.rsqrt(mean(x) + 1e-8), trials) == []
    assert TINY_NUMBERS in found.refused_in(lambda x: x / mean(x).sqrt(), trials)
    assert TINY_NUMBERS in found.refused_in(lambda x: x / (mean(x).sqrt() + 1e-4), trials)
    assert found.refused_in(lambda x: x / (mean(x) + 1e-8).sqrt(), trials) == []


def test_rows_that_are_tiny_in_the_output_may_be_lost_there() -> None:
    """An exponential less one loses numbers below its last bits, and nobody makes a gate of a network by `expm1`."""
    found = judged("x", "torch.nn.functional.elu(x)")
    assert found.refused_in(lambda x: torch.where(x > 0, x, x.exp() - 1), ("nominal_0", TINY_NUMBERS)) == []
    assert found.refused_in(lambda x: torch.where(x.abs() > 0.05, torch.nn.functional.elu(x), 0), (TINY_NUMBERS,))
