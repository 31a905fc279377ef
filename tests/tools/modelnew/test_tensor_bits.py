"""Equality of bits, in chunks."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.modelnew import tensor_bits
from ridgeline.tools.modelnew.tensor_bits import copied_bits, equal_bits


def test_nan_equals_itself_and_zeros_differ_by_sign() -> None:
    assert equal_bits(torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]))
    assert not equal_bits(torch.tensor(0.0), torch.tensor(-0.0))
    assert equal_bits(torch.arange(12).reshape(3, 4).t(), torch.arange(12).reshape(3, 4).t().contiguous())


def test_a_difference_in_the_last_chunk_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_bits, "_CHUNK_BYTES", 16)
    one = torch.arange(9, dtype=torch.int32)
    two = one.clone()
    assert equal_bits(one, two)
    two[8] = 0
    assert not equal_bits(one, two)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("count", [0, 1, 6, 8, 21, 24])
def test_one_bit_anywhere_is_seen_wherever_a_part_of_a_tensor_begins(
    dtype: torch.dtype, start: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_bits, "_CHUNK_BYTES", 16)
    one = torch.arange(32).to(dtype)[start : start + count]
    two = torch.arange(start, start + count).to(dtype)
    assert equal_bits(one, two) and equal_bits(two, one)
    for byte in range(two.view(torch.uint8).numel()):
        other = two.clone()
        other.view(torch.uint8)[byte] ^= 1
        assert not equal_bits(one, other)


def test_a_byte_that_is_no_bool_is_copied_and_compared_as_it_is() -> None:
    bools = torch.ones(3, 5, dtype=torch.bool)
    same = bools.clone()
    bools.view(torch.uint8)[1, 2] = 0x40
    assert not equal_bits(bools, same)
    assert not equal_bits(bools.t(), same.t())
    assert equal_bits(bools, copied_bits(bools))
    assert int(copied_bits(bools).view(torch.uint8)[1, 2]) == 0x40


def test_a_copy_of_another_type_has_its_bits() -> None:
    values = torch.tensor([1.5, torch.nan, -0.0])
    assert equal_bits(values, copied_bits(values))
