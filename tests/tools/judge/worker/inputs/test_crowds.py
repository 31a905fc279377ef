"""Inputs that are mostly one of their numbers, in a trial and in timed sets."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind
from ridgeline.tools.records.trial_names import CROWDED

PIXELS = "torch.randint(0, 256, (16, 512), dtype=torch.uint8)"
COUNT = "return torch.zeros(16, 256).scatter_add_(1, pixels.long(), torch.ones(16, 512))"


def crowded(found: Made) -> list[torch.Tensor]:
    """Return the first input as the trial and as a timed set have it."""
    views = tuple(map(torch.empty_like, found.source.given("a")))
    timed = found.source.timed_set("timed", views, 1, SetKind(Distribution.CROWDED))
    return [found.book.contents.of(CROWDED)[0][0], timed[0]]


def test_rows_hold_one_number_mostly_and_one_row_it_alone() -> None:
    found = made("pixels", PIXELS, COUNT)
    assert CROWDED in found.domain.names and not found.domain.skipped
    for pixels in crowded(found):
        most = torch.stack([row.long().bincount(minlength=256).max() for row in pixels])
        assert int(most.max()) == 512 and float(most.double().mean()) > 128
        assert int(torch.unique(pixels).numel()) > 100


def test_labels_of_one_dimension_are_mostly_one_of_them() -> None:
    found = made("labels", "torch.randint(3, 100, (1024,))", "return torch.eye(100)[labels].cumsum(0)")
    for labels in crowded(found):
        assert 900 < int(labels.bincount().max()) < 1024 and int(labels.max()) < 100


def test_rows_are_crowded_above_zero_and_below_under_every_secret() -> None:
    """A room for most of a row that is above 0 is found whichever number the other rows hold."""
    found = made("x", "torch.randn(64, 1024)", "return x.relu().sum(-1)")
    for seed in range(8):
        above = (found.source.crowded(f"seed {seed}")[0] > 0).sum(-1)
        assert int(above.max()) > 900 and int(above.min()) < 124


def test_floats_are_mostly_one_of_them_but_no_row_is_one_alone() -> None:
    found = made("x", "torch.randn(32, 512)", "return torch.histc(x, 64, -4, 4), x * 2")
    assert CROWDED in found.domain.names and not found.domain.skipped
    for x in crowded(found):
        counts = torch.stack([torch.unique(row, return_counts=True)[1].max() for row in x])
        assert int(counts.sum()) > x.numel() * 0.4 and int(counts.max()) < 512
        assert int(torch.unique(x).numel()) > 1000


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.randperm(64)",
        "torch.randint(0, 9, (64,)).sort().values",
        "torch.randn(64).sort().values",
        "torch.randn(8, 8).tril()",
        "torch.cov(torch.randn(8, 64))",
        "torch.where(torch.rand(64) < 0.5, -torch.inf, torch.zeros(()))",
    ],
)
def test_permutations_order_and_structure_are_not_crowded(inputs: str) -> None:
    assert CROWDED not in made("a", inputs, "return a * 2.0").domain.names
