"""Transforms hold what their plain formulations hold, bit by bit."""

from __future__ import annotations

import math

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.parameter_ways import Change
from ridgeline.tools.judge.worker.inputs.values.structure import has_structural_zeros, is_symmetric
from ridgeline.tools.judge.worker.inputs.values.transforms import (
    has_rows_to_lift,
    narrowed,
    whole_numbers,
    whole_range,
    with_lifted_rows,
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


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (8, 5, 6), (2, 3, 4, 5)])
def test_rows_are_lifted_by_a_number_of_their_own_that_leaves_their_differences(
    shape: tuple[int, ...], dims: int
) -> None:
    generator = torch.Generator().manual_seed(1)
    tensor = torch.randn(shape, generator=generator)
    lifts = (with_lifted_rows(tensor, generator, dims=dims) - tensor).reshape(tensor.shape[:-dims].numel(), -1)
    changed = lifts.amax(-1) != 0
    assert float((lifts.amax(-1) - lifts.amin(-1)).max()) < 1e-4
    assert bool(changed.any()) and bool(((lifts > 94.9) & (lifts < 125.1))[changed].all())


def test_zeros_stay_where_rows_are_lifted_and_what_keeps_no_differences_is_not() -> None:
    generator = torch.Generator().manual_seed(1)
    assert torch.equal(with_lifted_rows(torch.ones(8, 8).tril() * 2, generator, dims=2).triu(1), torch.zeros(8, 8))
    mask, ones = torch.eye(4).roll(1, 0), torch.ones(4, 4)
    kept = (
        mask,
        ones,
        ones.half()[:2],
        ones.bfloat16()[:2],
        torch.ones(()),
        torch.ones(0),
        torch.ones(4, 4, dtype=torch.int64),
    )
    assert not any(map(has_rows_to_lift, kept)) and has_rows_to_lift(ones[:2]) and has_rows_to_lift(ones.double()[:2])
    assert all(with_lifted_rows(tensor, generator, dims=1) is tensor for tensor in kept)


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_as_many_rows_are_narrow_by_each_part_and_one_of_few_by_the_least(rows: int) -> None:
    values = torch.randn(rows, 512, generator=torch.Generator().manual_seed(1))
    for seed in range(4):
        found = narrowed(values, torch.Generator().manual_seed(seed), size=256.0)
        parts = found.std(-1) / values.std(-1)
        powers = sorted(torch.log2(parts).round().int().tolist())
        assert powers == sorted(-8 + i * 8 // rows for i in range(rows))


def test_narrowed_numbers_are_as_far_from_their_mean_as_they_were_times_a_part() -> None:
    values = 3 + torch.randn(8, 16, generator=torch.Generator().manual_seed(1))
    found = narrowed(values, torch.Generator().manual_seed(2), size=256.0)
    parts = ((found - values.mean()) / (values - values.mean())).median(-1, keepdim=True).values.log2().round()
    assert -8 <= int(parts.min()) < int(parts.max()) <= -1
    assert torch.allclose(found, values.mean() + (values - values.mean()) * parts.exp2(), atol=1e-6)
    triangle = values.tril()
    found = narrowed(triangle[:, :8].contiguous(), torch.Generator().manual_seed(2), size=256.0)
    assert bool((found.triu(1) == 0).all()) and float(found[found != 0].std()) < 1 / 2
    for kept in (of_kind(LAST, values), (values > 3).float(), torch.empty(4, 0)):
        assert narrowed(kept, torch.Generator(), size=256.0) is kept
