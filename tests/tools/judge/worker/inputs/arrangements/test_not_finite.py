"""NaN and infinities come in some rows of an input, as whole lines where they may, and as a single number."""

from __future__ import annotations

import math

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.arrangements.not_finite import (
    KINDS,
    long_axes,
    may_be_not_finite,
    with_not_finite,
    with_one_not_finite,
)
from ridgeline.tools.judge.worker.inputs.input_form import InputForm

SHAPE = (96, 64)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def gaps(seed: int, *axes: int, kinds: tuple[float, ...] = KINDS) -> torch.Tensor:
    given = torch.randn(SHAPE)
    [x] = with_not_finite((given,), generator(seed), kinds={0: kinds}, wholly=[(0, axis) for axis in axes])
    is_gap = ~x.isfinite()
    assert torch.equal(x[~is_gap], given[~is_gap])
    return x


@pytest.mark.parametrize("seed", range(6))
def test_rows_have_few_and_many_of_each_kind_and_some_rows_and_no_line_none_else(seed: int) -> None:
    x = gaps(seed)
    counts = (~x.isfinite()).sum(-1)
    assert int((counts == 0).sum()) >= 24 and 0 < int(counts[counts > 0].min()) <= 3 and 24 <= int(counts.max()) < 64
    assert bool(x.isfinite().any(0).all())
    of_kinds = torch.stack([x.isnan(), x == math.inf, x == -math.inf]).any(-1)
    assert bool((of_kinds & (of_kinds.sum(0) == 1)).any(1).all()) and bool(of_kinds.all(0).any())


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("seed", range(6))
def test_whole_lines_come_along_the_dimension_that_takes_them_alone(seed: int, axis: int) -> None:
    is_gap = ~gaps(seed, axis, kinds=(math.nan,)).isfinite()
    assert 0 < int(is_gap.all(axis).sum()) <= 24 and not bool(is_gap.all(1 - axis).any())


@pytest.mark.parametrize("seed", range(24))
def test_whole_lines_beside_each_other_fill_no_line_of_another_dimension(seed: int) -> None:
    [x] = with_not_finite((torch.zeros(16, 2),), generator(seed), kinds={0: KINDS}, wholly=[(0, 0)])
    assert bool(x.isfinite().any(1).all())


def test_inputs_in_order_and_of_whole_numbers_stay() -> None:
    draws = [(torch.randn(SHAPE), torch.randn(SHAPE).sort(-1).values, torch.randint(9, SHAPE)) for _ in range(2)]
    forms = [InputForm.of(first, second) for first, second in zip(*draws, strict=True)]
    assert may_be_not_finite(draws[0], forms, (0, 1, 2)) == (0,)


def test_whole_lines_need_others_beside_them() -> None:
    assert long_axes(torch.Size((4, 8, 1))) == (0,) and long_axes(torch.Size((64,))) == ()


@pytest.mark.parametrize("shape", [(), (1,), (64,), (5, 1), (3, 4, 2)])
def test_an_input_of_any_shape_keeps_it_and_has_some(shape: tuple[int, ...]) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        found = [
            with_not_finite((torch.ones(shape, dtype=dtype),), generator(s), kinds={0: KINDS})[0] for s in range(8)
        ]
        assert {(x.shape, x.dtype) for x in found} == {(torch.Size(shape), dtype)}
        assert not all(bool(x.isfinite().all()) for x in found)


def test_a_single_number_is_of_one_input_and_the_given_ones_stay() -> None:
    given = (torch.zeros(SHAPE), torch.zeros(SHAPE).T, torch.zeros(SHAPE))
    found = [
        with_one_not_finite(given, generator(s), kinds={0: (math.inf, -math.inf), 1: (math.inf,)}) for s in range(24)
    ]
    counts = [[int((~x.isfinite()).sum()) for x in each] for each in found]
    assert {tuple(each) for each in counts} == {(1, 0, 0), (0, 1, 0)}
    assert {float(x.sum()) for each in found for x in each} == {0.0, math.inf, -math.inf}
    assert all(not bool(x.any()) for x in given)
