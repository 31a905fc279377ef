"""Poison, and the elements that still hold it."""

import math

import pytest
import torch
from tests.tools.judge.worker.grading.outputs.moved_bytes import bytes_an_element

from ridgeline.tools.judge.worker.grading.outputs import poison
from ridgeline.tools.judge.worker.grading.outputs.expected import expect
from ridgeline.tools.judge.worker.grading.outputs.poison import (
    fill_words,
    holds_only,
    missing_elements,
    poison_word,
    unwritten,
)

FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
WHOLE = [*INTEGERS, torch.bool]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("nan", [True, False])
def test_poison_is_nan_or_finite_and_found_again(dtype: torch.dtype, *, nan: bool) -> None:
    tensor = torch.zeros(8, 8, dtype=dtype)
    word = poison_word(dtype, nan=nan)
    fill_words(tensor, word)
    assert bool(torch.isnan(tensor).all()) is nan
    assert bool(torch.isfinite(tensor).all()) is not nan
    tensor[2, 3] = math.nan
    tensor[4] = 1
    assert int(missing_elements(tensor, word).sum()) == 64 - 9


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_poison_is_no_nan_that_an_honest_kernel_writes(dtype: torch.dtype) -> None:
    honest = torch.tensor([math.nan, math.inf - math.inf], dtype=dtype)
    bits = {int(honest.view(poison._WORDS[dtype.itemsize])[i]) for i in range(2)}
    all_ones = (1 << 8 * dtype.itemsize - 1) - 1  # CUDA's
    assert not {poison_word(dtype, nan=True) for _ in range(4000)} & (bits | {all_ones})


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_integers_get_two_patterns(dtype: torch.dtype) -> None:
    tensor = torch.zeros(8, dtype=dtype)
    word = poison_word(dtype, nan=True)
    fill_words(tensor, word)
    assert int(missing_elements(tensor, word).sum()) == 8


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("nan", [True, False])
def test_one_element_that_was_left_out_is_found(dtype: torch.dtype, *, nan: bool) -> None:
    output = torch.empty(5, 7, dtype=dtype)
    word = poison_word(dtype, nan=nan)
    fill_words(output, word)
    wanted = torch.full((5, 7), word ^ 4, dtype=torch.int64)
    wanted = wanted.to(dtype) if dtype in WHOLE else torch.randn(5, 7).to(dtype)
    assert unwritten(output, word, expect(wanted)) == poison.Unwritten(count=35, first=0)
    kept = output[3, 2].clone()
    output.copy_(wanted)
    assert unwritten(output, word, expect(wanted)) is None
    output[3, 2] = kept
    assert unwritten(output, word, expect(wanted)) == poison.Unwritten(count=1, first=3 * 7 + 2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_element_is_found_beside_nan_and_infinities(dtype: torch.dtype) -> None:
    for nan in (True, False):
        word = poison_word(dtype, nan=nan)
        output = torch.zeros(64, dtype=dtype)
        fill_words(output[9:10], word)
        output[1:4] = torch.tensor([math.nan, math.inf, -math.inf])
        found = unwritten(output, word, expect(torch.zeros(64, dtype=torch.float64)))
        assert found == poison.Unwritten(count=1, first=9)


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
@pytest.mark.parametrize("nan", [True, False])
def test_an_output_holds_only_poison_until_one_element_is_written(dtype: torch.dtype, *, nan: bool) -> None:
    output = torch.empty(5, 7, dtype=dtype)
    word = poison_word(dtype, nan=nan)
    fill_words(output, word)
    assert holds_only(output, word)
    for other in (word ^ 1, 0 if word else 1) if dtype is not torch.bool else ():
        fill_words(output, word)
        fill_words(output[3, 2:3], other)
        assert not holds_only(output, word)
    fill_words(output, word)
    output[3, 2] = 0 if output[3, 2] else 1
    assert not holds_only(output, word)
    assert holds_only(output[:0], word)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_a_small_integer_that_is_one_off_was_written_whatever_its_bits(dtype: torch.dtype) -> None:
    output = torch.arange(100, dtype=dtype)
    for off, found in ((1, None), (2, poison.Unwritten(count=1, first=40))):
        word = 40 + off
        wrong = output.clone()
        wrong[40] = word
        wanted = output.clone()
        wanted[word] = 0  # else it rightly holds the word
        wrong[word] = 0
        assert unwritten(wrong, word, expect(wanted)) == found


def test_bools_hold_both_values_before_a_call_and_no_row_tells_the_next_ones() -> None:
    output = torch.empty(64, 4096, dtype=torch.bool)
    fill_words(output, poison_word(torch.bool, nan=True))
    rows = output.view(torch.uint8).double()
    assert bool(((rows.mean(dim=1) - 0.5).abs() < 0.1).all())
    assert len(set(map(tuple, output.tolist()))) == 64


def test_bools_that_were_left_out_are_told_from_wrong_ones_and_few_are_left_to_the_comparison() -> None:
    output = torch.empty(4, 128, dtype=torch.bool)
    word = poison_word(torch.bool, nan=True)
    fill_words(output, word)
    left, wanted = output.clone(), torch.ones(4, 128, dtype=torch.bool)
    output[:3] = True
    found = unwritten(output, word, expect(wanted))
    assert found is not None and found.count == int((~left[3]).sum()) and found.first >= 3 * 128
    assert unwritten(~wanted, word, expect(wanted)) is None, "half of them are as the poison, the others are wrong"
    output[3, 8:] = True
    assert unwritten(output, word, expect(wanted)) is None, "a few of one value may be chance"


def test_poison_is_looked_for_in_one_pass_without_a_mask() -> None:
    output = torch.randn(64, 1024)
    expected = expect(output.double())
    for nan in (True, False):
        word = poison_word(output.dtype, nan=nan)
        assert bytes_an_element(lambda: unwritten(output, word, expected), output) < 4.1  # noqa: B023  # called at once
        assert bytes_an_element(lambda: holds_only(output, word), output) < 4.1  # noqa: B023  # called at once
