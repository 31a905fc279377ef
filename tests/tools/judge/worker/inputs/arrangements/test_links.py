"""Whole numbers near their places in one trial: neighbours alone are linked, whichever way lists of links lie."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.inputs.arrangements.links import axis_of, near_their_places
from ridgeline.tools.records.trial_names import APART

X = "torch.randn(512)"


def near(found: Made, index: int = 1) -> torch.Tensor:
    """Return an input of the trial."""
    return found.book.contents.of(APART)[0][index]


def furthest(links: torch.Tensor, places: torch.Tensor) -> int:
    """Return how far links lead on a ring of 512 places."""
    away = (links - places).abs()
    return int(torch.minimum(away, 512 - away).max())


@pytest.mark.parametrize("shape", [(512, 8), (3, 512, 8), (512, 512)])
def test_numbers_lie_near_their_rows(shape: tuple[int, ...]) -> None:
    found = made("x, i", f"{X}, torch.randint(512, {shape})", "return x[i].sum(-1)")
    assert APART in found.domain.names
    links = near(found)
    assert furthest(links, torch.arange(512).unsqueeze(-1)) == 8 and int(links.min()) >= 0 and int(links.max()) < 512
    assert links.dtype == torch.int64


@pytest.mark.parametrize("shape", [(8, 512), (2, 8, 512), (100, 512)])
def test_numbers_lie_near_their_columns_where_there_are_few_rows(shape: tuple[int, ...]) -> None:
    found = made("x, i", f"{X}, torch.randint(512, {shape})", "return x[i].sum(-2)")
    assert APART in found.domain.names and furthest(near(found), torch.arange(512)) == 8


def test_both_ends_of_a_link_are_near_each_other() -> None:
    body = "return torch.zeros_like(x).index_add(0, i[1], x[i[0]])"
    source, target = near(made("x, i", f"{X}, torch.randint(512, (2, 4096))", body))
    assert furthest(source, target) == 16 and source.unique().numel() == target.unique().numel() == 512


def test_ends_that_are_two_inputs_are_near_each_other() -> None:
    body = "return torch.zeros_like(x).index_add(0, target, x[source])"
    found = made("x, source, target", f"{X}, torch.randint(512, (4096,)), torch.randint(512, (4096,))", body)
    assert furthest(near(found, 1), near(found, 2)) == 16


def test_one_row_of_numbers_alone_has_no_such_trial() -> None:
    found = made("x, i", f"{X}, torch.randint(512, (4096,))", "return x[i]")
    assert not found.source.links.near and APART not in found.domain.names
    beside = made("i, j", "torch.randint(512, (4096,)), torch.randint(512, (4000,))", "return i + j.sum()")
    assert not beside.source.links.near


@pytest.mark.parametrize(
    ("shape", "span", "axis"),
    [((8, 512), 512, -1), ((512, 8), 512, -2), ((512, 512), 512, -2), ((100, 512), 512, -1), ((512, 100), 100, -1)],
)
def test_the_dimension_is_the_one_nearer_in_size(shape: tuple[int, ...], span: int, axis: int) -> None:
    assert axis_of(torch.Size(shape), (0, span - 1)) == axis


@pytest.mark.parametrize(("shape", "span"), [((8, 512), 50000), ((8, 32), 32), ((), 9), ((4, 512), 1025)])
def test_words_of_a_text_and_few_numbers_stay(shape: tuple[int, ...], span: int) -> None:
    tensor = torch.zeros(shape, dtype=torch.int64)
    assert near_their_places(tensor, torch.Generator().manual_seed(0), ends=(0, span - 1)) is tensor


def test_numbers_that_the_reference_refuses_so_are_named_and_the_others_are_near() -> None:
    body = (
        "assert float((i - torch.arange(512).unsqueeze(-1)).abs().double().mean()) > 100",
        "return x[i].sum(1) * x.sum() + x[j].sum(1)",
    )
    found = made("x, i, j", f"{X}, torch.randint(512, (512, 8)), torch.randint(512, (512, 8))", *body)
    assert f"{APART} i" in found.domain.skipped and set(found.source.links.near) == {2}
    assert furthest(near(found, 2), torch.arange(512).unsqueeze(-1)) == 8
