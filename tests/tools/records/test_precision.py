"""The gates and what they admit."""

from pathlib import Path

import pytest

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.precision import (
    ELEMENT_SLACK,
    NOMINAL_GATE,
    OWN_MULTIPLE,
    ROW_SLACK,
    SUM_ERROR,
    Errors,
    accepted_classes,
    allows_tf32,
    gate_for,
    strictness,
)
from ridgeline.tools.records.vocabulary import STRICTEST_FIRST, PrecisionClass

PAGE = (Path(__file__).parents[3] / "docs" / "judge.md").read_text(encoding="utf-8")


def test_nominal_gate_holds_when_the_classes_own_error_is_small() -> None:
    assert gate_for(PrecisionClass.FP32, Errors(overall=1e-7)).overall == 1e-5


def test_gate_follows_the_classes_own_error_on_hard_inputs() -> None:
    assert gate_for(PrecisionClass.TF32, Errors(overall=9.2e-4)).overall == pytest.approx(2.3e-3)


def test_tightened_gate_is_a_multiple_of_the_own_error_alone() -> None:
    assert gate_for(PrecisionClass.FP32, Errors(overall=1e-7), tightened=True).overall == pytest.approx(4e-7)


def test_gate_rejects_a_zeroed_row_that_the_whole_output_hides() -> None:
    gate = gate_for(PrecisionClass.TF32, Errors(overall=3e-4, worst_row=4e-4, worst_element=2e-3))
    assert not gate.admits(Errors(overall=9e-4, worst_row=1.0, worst_element=4e-3))


def test_bf16_outputs_are_never_asked_for_fp32() -> None:
    assert accepted_classes(PrecisionClass.FP32, ("bfloat16",)) == (PrecisionClass.BF16,)


def test_tolerance_accepts_every_stricter_class() -> None:
    accepted = accepted_classes(PrecisionClass.BF16, ("float32",))
    assert accepted == (PrecisionClass.FP32, PrecisionClass.TF32, PrecisionClass.FP16, PrecisionClass.BF16)
    assert [strictness(c) for c in accepted] == [1, 2, 3, 4]
    assert accepted_classes(PrecisionClass.BF16, ("float64",)) == (PrecisionClass.FP64, *accepted)


def test_exact_is_no_tolerance() -> None:
    with pytest.raises(ProblemError, match="exact is not one of"):
        accepted_classes(PrecisionClass.EXACT, ("float32",))


@pytest.mark.parametrize(
    ("tolerance", "operands", "output", "allowed"),
    [
        (PrecisionClass.FP32, "float32", "float32", False),
        (PrecisionClass.TF32, "float32", "float32", True),
        (PrecisionClass.CRFM, "float32", "float32", True),
        (PrecisionClass.FP32, "float32", "float16", True),  # no fp16 output is better than fp16
        (PrecisionClass.FP32, "float16", "float32", True),  # exact products
        (PrecisionClass.FP32, "bfloat16", "bfloat16", True),
        (PrecisionClass.FP32, "float64", "float64", False),
    ],
)
def test_tf32_is_allowed_by_tolerance_output_or_operands(
    tolerance: PrecisionClass, operands: str, output: str, allowed: bool
) -> None:
    assert allows_tf32(tolerance, (operands,), (output,)) is allowed


def test_one_wide_operand_is_not_exact_in_tf32() -> None:
    assert not allows_tf32(PrecisionClass.FP32, ("float16", "float32"), ("float32",))


@pytest.mark.parametrize("precision", STRICTEST_FIRST)
def test_the_page_gives_each_classes_gates(precision: PrecisionClass) -> None:
    figures = (each[precision] for each in (NOMINAL_GATE, ROW_SLACK, ELEMENT_SLACK, OWN_MULTIPLE))
    assert f"| {precision} | {' | '.join(f'{figure:g}' for figure in figures)} |" in PAGE


def test_the_page_gives_the_change_of_operands_that_tells_what_sums_lose() -> None:
    said = " ".join(PAGE.split())
    assert "reduced by 2^-22 of themselves (fp32), 2^-45 (fp64) or 2^-20 (others" in said
    others = {SUM_ERROR[each] for each in STRICTEST_FIRST} - {
        SUM_ERROR[PrecisionClass.FP32],
        SUM_ERROR[PrecisionClass.FP64],
    }
    assert [2 * each for each in (SUM_ERROR[PrecisionClass.FP32], SUM_ERROR[PrecisionClass.FP64])] == [
        2.0**-22,
        2.0**-45,
    ]
    assert others == {2.0**-21}
