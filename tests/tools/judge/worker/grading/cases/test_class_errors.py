"""What rounding to a precision class does to numbers, and to a reference."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.grading.cases.class_errors import is_whole, rounded, worst_of
from ridgeline.tools.records.precision import NOMINAL_GATE, Errors
from ridgeline.tools.records.vocabulary import PrecisionClass


@pytest.mark.parametrize(
    ("precision", "step"),  # of numbers just above 1
    [(PrecisionClass.TF32, 2**-10), (PrecisionClass.FP16, 2**-10), (PrecisionClass.BF16, 2**-7)],
)
def test_a_class_rounds_to_its_mantissa_to_nearest_with_ties_to_even(precision: PrecisionClass, step: float) -> None:
    values = torch.tensor([1.0, 1 + 0.4 * step, 1 + 0.5 * step, 1 + 0.6 * step, 1 + 1.5 * step, -1 - 0.6 * step])
    want = torch.tensor([1.0, 1.0, 1.0, 1 + step, 1 + 2 * step, -1 - step])
    assert torch.equal(rounded(values, precision), want)


def test_fp32_and_integers_are_not_rounded() -> None:
    values, whole = torch.randn(8), torch.arange(8)
    assert rounded(values, PrecisionClass.FP32) is values
    assert rounded(whole, PrecisionClass.FP8) is whole


def test_the_worst_of_errors_passes_over_what_is_unknown() -> None:
    one = (Errors(overall=1.0, worst_row=3.0), Errors(overall=5.0))
    found = worst_of(one, None, (Errors(overall=2.0), Errors(overall=4.0)))
    assert found == (Errors(overall=2.0, worst_row=3.0), Errors(overall=5.0)), "each output by itself"


def test_a_class_errs_on_a_product_within_its_nominal_gate() -> None:
    book = made("x", "torch.randn(64, 64)", "return x @ x").book
    case = book.case("nominal_0")
    errors = [book.own_errors(case, precision) for precision in (PrecisionClass.FP32, PrecisionClass.BF16)]
    assert all(e is not None for e in errors)
    exact, reduced = (e[0].overall for e in errors if e is not None)
    assert exact < NOMINAL_GATE[PrecisionClass.FP32] < reduced < NOMINAL_GATE[PrecisionClass.BF16]


def test_infinities_stay_in_fp8_which_has_none() -> None:
    tensor = torch.tensor([torch.inf, -torch.inf, torch.nan, 1.3])
    found = rounded(tensor, PrecisionClass.FP8)
    assert found[:2].equal(tensor[:2]) and bool(found[2].isnan()) and float(found[3]) == 1.25


def test_nan_among_whole_numbers_does_not_move_them() -> None:
    assert is_whole(torch.tensor([[1.0, torch.nan], [0.0, torch.inf]]))
    assert not is_whole(torch.tensor([[torch.nan], [0.5]]))
