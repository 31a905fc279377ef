"""Whether all of a tensor is finite."""

import math

import pytest
import torch

from ridgeline.tools.judge.worker.finite import has_finite_sum, is_finite


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_element_that_is_not_finite_is_seen(dtype: torch.dtype, bad: float) -> None:
    values = torch.randn(5, 1000, dtype=torch.float64).to(dtype)
    assert is_finite(values) and has_finite_sum(values)
    values[3, 7] = bad
    assert not is_finite(values) and not has_finite_sum(values)


def test_infinities_of_both_signs_do_not_cancel() -> None:
    assert not is_finite(torch.tensor([math.inf, -math.inf]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_finite_elements_whose_sum_is_not_are_finite(dtype: torch.dtype) -> None:
    values = torch.full((8,), torch.finfo(dtype).max, dtype=dtype)
    assert not has_finite_sum(values)
    assert is_finite(values)


def test_nothing_is_finite() -> None:
    assert is_finite(torch.empty(0, 3))
