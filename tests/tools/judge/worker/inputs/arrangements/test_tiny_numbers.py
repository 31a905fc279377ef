"""Rows and single numbers become tiny; inputs of one shape at the same places, together or one beside the other."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.arrangements.tiny_numbers import may_be_tiny, with_tiny_numbers
from ridgeline.tools.judge.worker.inputs.input_form import InputForm


def halved(*tensors: torch.Tensor, most: float = 44.0, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Return by how many halvings each number of each tensor became smaller."""
    changed = with_tiny_numbers(
        tensors, torch.Generator().manual_seed(seed), halvings=dict.fromkeys(range(len(tensors)), most)
    )
    return tuple((t.double() / c.double()).log2() for t, c in zip(tensors, changed, strict=True))


def tiny_rows(found: torch.Tensor) -> torch.Tensor:
    """Return which rows are tiny as a whole."""
    return (found > 1).all(-1)


@pytest.mark.parametrize("most", [44.0, 12.0])
def test_a_quarter_of_the_rows_and_some_single_numbers_are_tiny_by_factors_of_their_own(most: float) -> None:
    [found] = halved(torch.rand(256, 64) + 1, most=most)
    rows = tiny_rows(found)
    assert int(rows.sum()) == 64
    assert float((found[~rows] > 1).double().mean()) == pytest.approx(1 / 64, rel=0.3)
    tiny = found[found > 1]
    assert 4.9 < float(tiny.min()) < 6 and most - 2 < float(tiny.max()) < most + 0.1
    assert float(tiny.median()) == pytest.approx((5 + most) / 2, rel=0.2)
    assert float((found[rows] - found[rows][:, :1]).abs().max()) < 1e-5  # a row has one factor


def test_inputs_of_one_shape_are_tiny_at_the_same_places_together_or_alone() -> None:
    one, other = halved(torch.rand(256, 64) + 1, torch.rand(256, 64) + 1)
    rows, others = tiny_rows(one), tiny_rows(other)
    parts = (rows & ~others, others & ~rows, rows & others)
    assert min(int(part.sum()) for part in parts) >= 6 and int((rows | others).sum()) <= 64
    both = (one > 1) & (other > 1)
    assert float((one[both] - other[both]).abs().max()) < 1e-5


def test_each_number_of_one_dimension_is_a_row() -> None:
    [found] = halved(torch.rand(256) + 1)
    assert int((found > 1).sum()) >= 64 and len(set(found[found > 1].round().tolist())) > 16


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_a_type_would_hold_with_fewer_bits_stays(dtype: torch.dtype) -> None:
    tensor = (torch.rand(256, 64) + 1).to(dtype)
    [changed] = with_tiny_numbers((tensor,), torch.Generator().manual_seed(0), halvings={0: 44.0})
    assert float(changed.double().min()) >= torch.finfo(dtype).tiny
    assert int((changed < tensor).sum()) > 100 and changed.dtype == dtype


def test_zeros_and_infinities_stay() -> None:
    tensor = torch.tensor([0.0, float("inf"), -float("inf")]).repeat(64)
    [changed] = with_tiny_numbers((tensor,), torch.Generator().manual_seed(0), halvings={0: 44.0})
    assert torch.equal(changed, tensor)


def test_masks_rows_in_order_and_symmetric_inputs_stay() -> None:
    square = torch.randn(16, 16)
    draws = (
        torch.randn(16, 16),
        (torch.rand(16, 16) < 0.5).float(),
        torch.rand(16, 16).sort(-1).values,
        square + square.mT,
        torch.randint(9, (16, 16)),
        torch.randn(1),
    )
    forms = [InputForm.of(t, t) for t in draws]
    assert may_be_tiny(draws, forms, range(len(draws))) == (0,)
    assert may_be_tiny(draws, forms, ()) == ()


def with_zeros(*tensors: torch.Tensor, zero: float = 0.0) -> tuple[torch.Tensor, ...]:
    return with_tiny_numbers(
        tensors, torch.Generator().manual_seed(0), halvings={0: 44.0}, zeros=range(len(tensors)), zero=zero
    )


def test_a_sixteenth_of_the_rows_are_zeros_and_one_at_least_of_several() -> None:
    for rows, count in ((256, 16), (4, 1), (1, 0)):
        [changed] = with_zeros(torch.rand(rows, 64) + 1)
        assert int((changed == 0).all(-1).sum()) == count and int((changed == 0).sum()) == 64 * count
    [changed] = with_zeros(torch.rand(256) + 1)
    assert int((changed == 0).sum()) == 16


def test_rows_of_inputs_of_one_shape_are_zeros_together_or_alone_and_of_one_sign() -> None:
    one, other = ((t == 0).all(-1) for t in with_zeros(torch.rand(1024, 8) + 1, torch.rand(1024, 8) + 1))
    assert min(int(part.sum()) for part in (one & ~other, other & ~one, one & other)) >= 6
    assert int((one | other).sum()) <= 64
    [changed] = with_zeros(torch.rand(256, 64) + 1, zero=-0.0)
    assert int(changed.signbit().sum()) == 16 * 64
