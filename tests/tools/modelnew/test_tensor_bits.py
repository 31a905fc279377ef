"""Equality of bits, in chunks."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.modelnew import tensor_bits
from ridgeline.tools.modelnew.tensor_bits import equal_bits


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
