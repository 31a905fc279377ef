"""Transforms hold what their plain formulations hold, bit by bit."""

from __future__ import annotations

import math

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.parameter_ways import Change
from ridgeline.tools.judge.worker.inputs.structure import has_structural_zeros, is_symmetric
from ridgeline.tools.judge.worker.inputs.transforms import (
    whole_numbers,
    whole_range,
    with_one_row,
    with_one_run,
    with_one_slice,
)

SHAPES = [(), (0,), (5,), (4, 0), (3, 7), (6, 6), (2, 8, 33)]
PLAIN, NONE, LAST, TRIANGLE, SYMMETRIC = "plain", "nothing finite", "last is infinite", "triangle", "symmetric"


def plain_whole_numbers(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    finite = torch.isfinite(tensor)
    if not bool(finite.any()):
        return tensor
    lowest, highest = whole_range(float(tensor[finite].min()), float(tensor[finite].max()))
    drawn = torch.randint(lowest, highest + 1, tensor.shape, generator=generator).to(tensor.dtype)
    whole = torch.where(finite, drawn, tensor)
    if is_symmetric(tensor):
        whole = whole.tril() + whole.tril(-1).mT
    return torch.where(tensor == 0, tensor, whole) if has_structural_zeros(tensor) else whole


def of_kind(kind: str, values: torch.Tensor) -> torch.Tensor:
    if kind == NONE:
        return torch.full_like(values, -math.inf)
    if kind == LAST and values.numel():
        values.view(-1)[-1] = math.inf
    if kind == TRIANGLE and values.dim() > 1:
        return values.tril()
    square = values.dim() > 1 and values.shape[-1] == values.shape[-2]
    return values + values.mT if kind == SYMMETRIC and square else values


@pytest.mark.parametrize("kind", [PLAIN, NONE, LAST, TRIANGLE, SYMMETRIC])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_whole_numbers_are_the_plain_ones(dtype: torch.dtype, kind: str) -> None:
    for shape in SHAPES:
        for draw in (torch.randn, torch.rand):
            values = of_kind(kind, draw(shape, dtype=torch.float64).to(dtype))
            found, wanted = (f(values, torch.Generator().manual_seed(7)) for f in (whole_numbers, plain_whole_numbers))
            assert found.dtype == wanted.dtype
            assert torch.equal(found, wanted)


@pytest.mark.parametrize("change", [with_one_row, with_one_run, with_one_slice])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.uint8, torch.float32, torch.float16])
def test_a_symmetric_matrix_of_any_type_changes_in_a_row_and_its_column(change: Change, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    drawn = (torch.rand(16, 16, generator=generator) for _ in range(2))
    tensor, other = (((each + each.mT) > 1).to(dtype) for each in drawn)
    changed = change(tensor, other, generator)
    assert torch.equal(changed, changed.mT) and not torch.equal(changed, tensor)
    assert set(changed.flatten().tolist()) <= {0, 1}  # a mask stays one
