"""Numbers that arithmetic flushes to zero: an output of them may be zero, but it may not be anything else."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged

from ridgeline.tools.judge.worker.grading.outputs.expected import expect
from ridgeline.tools.judge.worker.grading.outputs.type_range import flushed
from ridgeline.tools.records.vocabulary import PrecisionClass

TINY = float(torch.finfo(torch.float32).tiny)


def flushing(x: torch.Tensor, size: float) -> torch.Tensor:
    """Return a product as arithmetic makes it that has no number between 0 and `TINY`."""
    product = x * size
    return torch.where(product.abs() < TINY, 0.0, product)


def scaled(size: float) -> Judged:
    return Judged("x", "torch.randn(64, 64)", f"return torch.sin(x) * 2**-60 * {size * 2**60}")


@pytest.mark.parametrize("size", [1e-41, 1e-39, 1e-38, 1e-37, 1e-36])
def test_what_is_flushed_to_zero_is_right(size: float) -> None:
    judged = scaled(size)
    assert judged.passes("nominal_0", lambda x: flushing(torch.sin(x), size))
    assert not judged.passes("nominal_0", lambda x: torch.sin(x) * max(32 * size, 32 * TINY))
    assert not judged.passes("nominal_0", lambda x: torch.full_like(x, 1.0))
    assert judged.passes("nominal_0", torch.zeros_like) == (size < TINY)


@pytest.mark.parametrize("size", [1e-31, 1e-20, 1.0])
def test_an_output_within_range_is_asked_for_as_ever(size: float) -> None:
    judged = scaled(size)
    assert judged.passes("nominal_0", lambda x: flushing(torch.sin(x), size))
    assert not judged.passes("nominal_0", torch.zeros_like)
    assert not judged.passes("nominal_0", lambda x: torch.sin(x) * size * (1 + 2.0**-15))


def test_float64_is_flushed_far_below_float32() -> None:
    values = torch.randn(64, 64, dtype=torch.float64) * 1e-36
    found = [expect(values).off_by(flushed(p)) for p in (PrecisionClass.FP32, PrecisionClass.FP64)]
    assert found[0].overall > 1e-2
    assert found[1].worst_row < 1e-200
    assert expect(torch.zeros(64, 64)).off_by(TINY).is_none
