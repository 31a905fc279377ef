"""Zeros at places that differ between draws are placed anew, as far as the reference takes that."""

from __future__ import annotations

import torch
from tests.tools.judge.worker.made import made

PADDED = "(torch.randn(16, 32, 8) + 3) * (torch.arange(32) < torch.randint(8, 24, (16, 1)))[..., None]"
LAYER = "return (x * 2).relu()"


def ends(x: torch.Tensor) -> torch.Tensor:
    """Return whether the rows without a number lie behind the others, by sequence."""
    is_empty = (x == 0).all(-1)
    return (is_empty.long().diff(dim=-1) >= 0).all(-1)


def test_padding_that_is_drawn_behind_is_anywhere_and_holds_numbers() -> None:
    found = made("x", PADDED, LAYER)
    assert not found.domain.not_varied | found.domain.only_as_drawn and bool(ends(found.source.given("a")[0]).all())
    for name in ("nominal_0", "shifted"):
        x = found.book.contents.of(name)[0][0]
        assert int(ends(x).sum()) < 4 and 0.3 < float((x == 0).float().mean()) < 0.7


def test_zeros_are_only_added_where_the_reference_asserts_the_others() -> None:
    found = made("x", PADDED, "assert bool((x[:, 24:] == 0).all())", LAYER)
    assert not found.domain.not_varied | found.domain.only_as_drawn
    x = found.book.contents.of("nominal_0")[0][0]
    assert int(ends(x).sum()) < 12 and bool((x[:, 24:] == 0).all())


def test_zeros_that_are_alike_in_every_draw_stay() -> None:
    found = made("x", "torch.randn(16, 16).tril()", LAYER)
    x = found.book.contents.of("nominal_0")[0][0]
    assert torch.equal(x, x.tril())
