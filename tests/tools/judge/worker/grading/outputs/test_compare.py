"""Comparison of tensors of every kind."""

import math

import pytest
import torch
from tests.tools.judge.worker.grading.outputs.moved_bytes import bytes_an_element

from ridgeline.tools.judge.worker.grading.outputs import chunks
from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.grading.outputs.expected import expect
from ridgeline.tools.records.precision import NOMINAL_GATE, ROW_SLACK
from ridgeline.tools.records.vocabulary import PrecisionClass


def test_equal_outputs_have_no_error() -> None:
    values = torch.randn(32, 64, dtype=torch.float64)
    found = compare(values.clone(), expect(values))
    assert (found.errors.overall, found.errors.worst_row, found.errors.worst_element) == (0.0, 0.0, 0.0)


def test_comparison_leaves_a_float64_output_as_it_is() -> None:
    output = torch.ones(4, 32, dtype=torch.float64)
    compare(output, expect(torch.zeros(4, 32, dtype=torch.float64)))
    assert bool((output == 1).all())


def test_error_is_taken_over_the_spread_not_the_size() -> None:
    values = 1000 + torch.randn(64, 64, dtype=torch.float64)
    mean = torch.full_like(values, float(values.mean()))
    assert compare(mean, expect(values)).errors.overall == pytest.approx(1.0, rel=1e-6)


def test_values_whose_squares_float64_does_not_hold_have_figures_all_the_same() -> None:
    values = torch.tensor([[1e200, -2e200, 3.0]], dtype=torch.float64)
    assert expect(values).all_finite
    assert expect(values).norm == math.inf
    assert expect(values * 1e-50).spread == pytest.approx((14 / 3) ** 0.5 * 1e150, rel=1e-6)


def test_worst_element_is_named() -> None:
    values = torch.randn(40, 64, dtype=torch.float64)
    output = values.clone()
    output[33, 17] += 5
    worst = compare(output, expect(values), with_worst=True).worst
    assert worst is not None
    assert worst.index == (33, 17)


def test_zeroed_small_row_shows_in_its_own_row() -> None:
    bits = torch.linspace(-5, 5, 64, dtype=torch.float64).unsqueeze(1)  # the row_scaled trial's
    drawn = torch.randn(64, 256, dtype=torch.float64)
    values = drawn / drawn.square().mean(dim=1, keepdim=True).sqrt() * torch.exp2(bits)  # rows as large as their scale
    output = values.clone()
    output[0] = 0
    errors = compare(output, expect(values)).errors
    assert errors.overall < 1e-3
    assert errors.worst_row > ROW_SLACK[PrecisionClass.BF16] * NOMINAL_GATE[PrecisionClass.BF16]


def test_the_worst_row_of_those_next_to_nothing_does_not_depend_on_how_little_is_left() -> None:
    values = torch.randn(64, 256, dtype=torch.float64)
    errors = []
    for left in (1e-1, 1e-2, 1e-3):
        values[5] = left * torch.randn(256, dtype=torch.float64)
        errors.append(compare(values + 1e-6, expect(values)).errors.worst_row)
    assert max(errors) < 1.2 * min(errors)


def test_nan_positions_must_match() -> None:
    values = torch.randn(4, 32, dtype=torch.float64)
    values[1, 1] = math.nan
    good, bad = values.float(), values.float()
    bad[2, 2] = math.nan
    assert compare(good, expect(values)).non_finite is None
    assert compare(bad, expect(values)).non_finite is not None
    assert compare(torch.nan_to_num(good), expect(values)).non_finite is not None


def test_infinities_must_have_the_same_sign() -> None:
    values = torch.randn(4, 32, dtype=torch.float64)
    values[0, 0] = math.inf
    output = values.float()
    assert compare(output, expect(values)).non_finite is None
    output[0, 0] = -math.inf
    assert compare(output, expect(values)).non_finite is not None


def test_integers_must_be_exact() -> None:
    values = 2**60 + torch.arange(100).reshape(10, 10)
    output = values.clone()
    assert compare(output, expect(values)).wrong_integers == 0
    output[3, 4] += 1
    found = compare(output, expect(values))
    assert found.wrong_integers == 1
    assert found.worst is not None
    assert (found.worst.index, found.worst.got, found.worst.expected) == ((3, 4), 2**60 + 35, 2**60 + 34)


@pytest.mark.parametrize("byte", [2, 0x40, 0xFF])
def test_a_byte_that_is_no_bool_is_wrong_also_where_true_is_expected(byte: int) -> None:
    values = torch.arange(100).reshape(10, 10) % 3 == 0
    output = values.clone()
    assert compare(output, expect(values)).wrong_integers == 0
    output.view(torch.uint8)[3, 3] = byte
    found = compare(output, expect(values))
    assert (found.wrong_integers, found.invalid_bools) == (1, 1)
    assert found.worst is not None
    assert (found.worst.index, found.worst.got, found.worst.expected) == ((3, 3), byte, 1.0)


def test_a_wrong_bool_is_wrong() -> None:
    found = compare(torch.tensor([True, False]), expect(torch.tensor([True, True])))
    assert (found.wrong_integers, found.invalid_bools) == (1, 0)


def test_rows_are_judged_alike_in_one_piece_and_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(37, 64, dtype=torch.float64)
    whole = expect(values).row_norms
    monkeypatch.setattr(chunks, "_CHUNK", 5 * 64)
    assert torch.equal(expect(values).row_norms, whole)


def test_figures_leave_out_what_is_not_finite() -> None:
    values = torch.tensor([1.0, 3.0, math.inf, math.nan, -math.inf], dtype=torch.float64)
    found = expect(values)
    assert (found.mean, found.all_finite) == (2.0, False)
    assert found.norm == pytest.approx(math.sqrt(10))
    assert expect(values[:2]).all_finite


def test_an_expected_output_of_float64_is_read_twice_and_nothing_of_its_size_is_made() -> None:
    for shape in ((64, 1024), (1 << 16,), (1 << 14, 4)):
        values = torch.randn(shape, dtype=torch.float64)
        assert bytes_an_element(lambda: expect(values), values) < 16.5  # noqa: B023  # called at once


def test_what_is_beyond_the_type_hides_no_error_of_the_rest() -> None:
    values = torch.randn(64, 64, dtype=torch.float64)
    values[3, 5] = 1e44
    expected = expect(values, torch.float32)
    assert (expected.beyond, expected.all_finite) == (torch.float32, False)
    assert expected.norm == pytest.approx(float(torch.linalg.vector_norm(values.where(values < 1e40, 0.0))))
    right = values.float()
    assert compare(right, expected).errors.overall < 1e-6
    assert compare(right.where(right == math.inf, 0.0), expected).errors.overall == pytest.approx(1.0, rel=0.1)
    assert compare(right.where(right != math.inf, 1.0), expected).non_finite is not None


@pytest.mark.parametrize("value", [65504.0, 65510.6, 65530.0, -65519.0])
def test_at_the_end_of_a_type_a_number_and_infinity_are_both_right(value: float) -> None:
    values = torch.tensor([1.0, 2.0, value], dtype=torch.float64)
    end = math.copysign(65504.0, value)
    for written in (end, math.copysign(math.inf, value)):
        found = compare(torch.tensor([1.0, 2.0, written], dtype=torch.float16), expect(values, torch.float16))
        assert found.non_finite is None
        assert found.errors.overall < 1e-3
    for wrong in (math.nan, -math.copysign(math.inf, value)):
        output = torch.tensor([1.0, 2.0, wrong], dtype=torch.float16)
        assert compare(output, expect(values, torch.float16)).non_finite is not None
