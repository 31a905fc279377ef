"""Inputs of one form become copies of the first of them, rows that meet copies of others; what has structure stays."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.inputs.arrangements.moved_copies import with_copies
from ridgeline.tools.records.trial_names import MOVED_COPY

SUM = "return (x * y).sum(-1)"


def moved(*shape: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input and its moved copy."""
    generator = torch.Generator().manual_seed(seed)
    drawn = tuple(torch.randn(shape, generator=generator) for _ in range(2))
    x, y = with_copies(drawn, generator, firsts={1: 0})
    return x, y


def lag_of(x: torch.Tensor, y: torch.Tensor, dim: int) -> int | None:
    """Return by how many places along a dimension one tensor is nearly the other; None where it is nowhere."""
    likeness = [
        float(torch.cosine_similarity(x.roll(lag, dim).flatten(), y.flatten(), 0)) for lag in range(x.shape[dim])
    ]
    best = max(range(len(likeness)), key=likeness.__getitem__)
    return min(best, x.shape[dim] - best) if likeness[best] > 0.9 else None


def lags(pair: tuple[torch.Tensor, torch.Tensor], dim: int) -> list[int]:
    """Return the lags of the rows, or matrices, that moved along a dimension of theirs."""
    found = (lag_of(x, y, dim) for x, y in zip(*pair, strict=True))
    return [lag for lag in found if lag is not None]


def test_half_of_the_rows_are_moved_each_by_places_of_its_own() -> None:
    found = lags(moved(32, 128), 0)
    assert len(found) >= 16 and min(found) >= 32 and max(found) <= 64 and len(set(found)) > 6


def test_the_other_half_is_moved_as_one_along_the_first_dimension() -> None:
    x, y = moved(64, 16)
    found = [lag_of(x[start : start + 32], y[start : start + 32], 0) for start in range(33)]
    assert any(lag is not None and 8 <= lag <= 16 for lag in found)


def test_few_rows_are_all_moved() -> None:
    assert len(lags(moved(8, 96), 0)) == 8 and len(lags(moved(1, 8, 96), 0)) == 0


@pytest.mark.parametrize("shape", [(12, 48, 24), (12, 3, 48, 24), (1, 12, 48, 24)])
def test_each_dimension_after_the_first_is_that_of_some_matrices(shape: tuple[int, ...]) -> None:
    x, y = moved(*shape)
    pair = (x[0], y[0]) if shape[0] == 1 else (x, y)
    rows, columns = lags(pair, len(shape) - 3 - (shape[0] == 1)), lags(pair, -1)
    assert len(rows) == 6 and min(rows) >= 12
    assert len(columns) == 6 and min(columns) >= 6


def test_a_single_series_is_moved() -> None:
    x, y = moved(256)
    assert 64 <= (lag_of(x, y, 0) or 0) <= 128


def test_numbers_are_held_for_a_while_in_about_half_of_the_rows() -> None:
    x, _ = moved(15, 256)
    likeness = torch.stack([torch.corrcoef(torch.stack((row[1:], row[:-1])))[0, 1] for row in x])
    assert 3 <= int((likeness > 0.7).sum()) <= 12 and int((likeness < 0.3).sum()) >= 3


def test_no_number_is_exactly_that_of_the_other_input_nor_beyond_its_own_range() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.rand(15, 64, generator=generator), torch.rand(15, 64, generator=generator) * 0.9
    x, y = with_copies((first, second), generator, firsts={1: 0})
    assert not bool((x.unsqueeze(-1) == y.unsqueeze(-2)).any())
    assert float(y.min()) >= float(second.min()) and float(y.max()) <= float(second.max())


def test_whole_numbers_stay_within_their_own_range() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randint(0, most, (15, 256), generator=generator) for most in (12, 11))
    x, y = with_copies((first, second), generator, firsts={1: 0})
    assert int(y.max()) == 10 and int(x.max()) == 11
    shares = [
        max(float((a.roll(lag) == b).float().mean()) for lag in range(64, 193)) for a, b in zip(x, y, strict=True)
    ]
    assert 0.75 < min(shares) <= max(shares) < 1


def copied(found: Made) -> dict[int, int]:
    """Return the input that each copy is made of, itself where its rows are."""
    arrangement: Any = found.source.arrangements.get(MOVED_COPY)
    return dict(arrangement.keywords["firsts"]) if arrangement else {}


def test_inputs_of_one_form_are_copies_of_the_first_of_them() -> None:
    inputs = "torch.randn(16, 64), torch.rand(16, 64), torch.randn(16, 64), torch.rand(16, 64), torch.randn(64, 16)"
    found = made("a, b, c, d, e", inputs, "return a * b + c * d + e.sum()")
    assert copied(found) == {2: 0, 3: 1} and MOVED_COPY in found.domain.names


def test_drawn_whole_numbers_of_one_range_are_copies() -> None:
    found = made("x, y", "torch.randint(9, (16, 64)), torch.randint(9, (16, 64))", "return (x == y).sum(-1)")
    assert copied(found) == {1: 0}
    inputs = "torch.randint(9, (16, 64)), torch.randint(99, (16, 64))"
    assert not copied(made("x, y", inputs, "return (x == y).sum(-1)"))


@pytest.mark.parametrize(
    "draw",
    [
        "torch.randn(16, 16).tril()",
        "torch.cov(torch.randn(16, 64))",
        "torch.randn(16, 64).sort(-1).values",
        "torch.rand(16, 64).argsort(-1).float().relu() * (torch.rand(16, 64) < 0.5)",
        "torch.ones(16, 64)",
        "(torch.rand(16, 64) < 0.5).float()",
        "torch.randn(16, 4)[:4]",
    ],
)
def test_inputs_with_structure_and_short_ones_are_no_copies(draw: str) -> None:
    found = made("x, y", f"{draw}, {draw}", SUM)
    assert not copied(found) and MOVED_COPY not in found.domain.names


@pytest.mark.parametrize("draw", ["torch.stack([torch.randperm(64) for _ in range(4)])", "torch.rand(4, 64) < 0.5"])
def test_permutations_and_masks_are_no_copies(draw: str) -> None:
    assert not copied(made("x, y", f"{draw}, {draw}", "return (x == y).sum(-1)"))


def test_a_single_input_whose_rows_do_not_meet_has_no_such_trial() -> None:
    assert MOVED_COPY not in made("x", "torch.randn(16, 64)", "return x * 2").domain.names


def with_copied_rows(*shape: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a draw, and what becomes of it where rows are copies of others."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(shape, generator=generator)
    return drawn, with_copies((drawn,), generator, firsts={0: 0})[0]


def partners(x: torch.Tensor, dim: int) -> list[tuple[int, int, int]]:
    """Return the pairs of rows of which one is nearly a moved copy of the other, and by how many places."""
    pairs = ((a, b, lag_of(x[a], x[b], dim)) for a in range(len(x)) for b in range(a))
    return [(a, b, lag) for a, b, lag in pairs if lag is not None]


@pytest.mark.parametrize(("rows", "pairs"), [(2, 1), (12, 6), (13, 6)])
def test_half_of_the_rows_are_moved_copies_of_the_others(rows: int, pairs: int) -> None:
    _, x = with_copied_rows(rows, 128)
    found = partners(x, 0)
    assert len(found) == pairs and len({row for a, b, _ in found for row in (a, b)}) == 2 * pairs
    assert all(32 <= lag <= 64 for _, _, lag in found)


def test_rows_of_two_dimensions_are_moved_along_either() -> None:
    _, x = with_copied_rows(12, 48, 24)
    assert len(partners(x, 0)) == len(partners(x, 1)) == 3


def test_a_row_without_a_partner_stays_and_no_draw_is_written() -> None:
    drawn, x = with_copied_rows(3, 64)
    assert int((drawn == x).all(-1).sum()) == 1
    generator = torch.Generator().manual_seed(0)
    assert torch.equal(drawn, torch.randn((3, 64), generator=generator))


PAIRS = "return (x[:, None] == x).sum(-1)"


def test_rows_that_meet_are_copies_of_others() -> None:
    found = made("x", "torch.randint(9, (12, 64))", PAIRS)
    assert copied(found) == {0: 0} and MOVED_COPY in found.domain.names
    assert int(found.book.case(MOVED_COPY).inputs[0].max()) < 9


def test_an_input_that_is_a_copy_or_has_one_has_no_copies_of_rows() -> None:
    draw = "torch.randint(9, (12, 64))"
    body = "return (x[:, None] == y).sum(-1) + (x[:, None] == x).sum(-1) + (z[:, None] == z).sum(-1)"
    found = made("x, y, z", f"{draw}, {draw}, torch.randint(9, (12, 63))", body)
    assert copied(found) == {1: 0, 2: 2}


@pytest.mark.parametrize("draw", ["torch.randint(9, (1, 64))", "torch.randint(9, (64,))", "torch.randint(9, (64, 7))"])
def test_one_row_and_short_ones_are_no_copies_of_others(draw: str) -> None:
    assert not copied(made("x", draw, "return (x[:, None] == x).sum(-1)"))
