"""Masks of numbers: other ones, whatever shape they are always drawn in, as far as the reference takes that."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.inputs.values.structure import order_of

PREFIX = "(torch.arange(64) < torch.randint(8, 60, (16, 1)))"
POOL = "return (x * mask).sum(-1) / mask.sum(-1)"


def masks(found: Made) -> list[torch.Tensor]:
    """Return the mask as verification and as timed sets have it."""
    views = tuple(map(torch.empty_like, found.source.given("a")))
    trials = [found.book.contents.of(name)[0][1] for name in ("nominal_0", "tweaked_0")]
    return [*trials, *(found.source.timed_set(f"timed {i}", views, 4, None)[1] for i in range(3))]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32", "bool"])
@pytest.mark.parametrize("padded", ["", ".flip(-1)"])
def test_a_mask_that_is_drawn_as_a_prefix_is_none(dtype: str, padded: str) -> None:
    found = made("x, mask", f"torch.randn(16, 64), {PREFIX}{padded}.to(torch.{dtype})", POOL)
    assert not found.domain.not_varied | found.domain.only_as_drawn
    nominal, tweaked, *timed = masks(found)
    for mask, fewest in ((nominal, 8), (tweaked, 0), *((each, 8) for each in timed)):
        rows = mask.double().flip(-1) if padded else mask.double()
        assert int((rows.diff(dim=-1) > 0).any(-1).sum()) >= fewest
        assert set(mask.double().unique().tolist()) == {0.0, 1.0}


def test_a_mask_of_integers_stays_a_prefix_where_the_reference_asserts_that() -> None:
    bound = "assert bool((mask.diff(dim=-1) <= 0).all())"
    found = made("x, mask", f"torch.randn(16, 64), {PREFIX}.long()", bound, POOL)
    for mask in masks(found):
        assert bool((mask.diff(dim=-1) <= 0).all())


def test_segments_of_two_in_one_row_stay_in_order() -> None:
    ids = "(torch.arange(64) >= torch.randint(8, 60, (1,))).long()"
    found = made("x, ids", f"torch.randn(64), {ids}", "return torch.zeros(2).index_add(0, ids, x)")
    assert all(order_of(each) == 1 for each in masks(found))


def test_a_symmetric_mask_of_numbers_stays_symmetric() -> None:
    adjacent = "(lambda a: (a + a.mT > 0).float())(torch.randn(16, 16))"
    found = made("x, mask", f"torch.randn(16, 16), {adjacent}", "return mask @ x")
    for mask in masks(found):
        assert torch.equal(mask, mask.mT)
