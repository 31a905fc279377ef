"""Inputs that are mostly one of their numbers, in a trial and in timed sets."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind
from ridgeline.tools.records.trial_names import CROWDED, CROWDED_HIGH

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


@pytest.mark.parametrize(
    ("inputs", "of_end"),
    [
        ("torch.randint(0, 256, (320, 64), dtype=torch.uint8)", 1.0),
        ("torch.randint(-120, 1, (320, 64), dtype=torch.int8)", 1.0),
        ("torch.randn(320, 64)", 0.6),
        ("-torch.rand(320, 64)", 0.6),
    ],
)
def test_every_column_is_mostly_the_number_furthest_from_zero_in_a_trial_of_its_own(inputs: str, of_end: float) -> None:
    """Sums along any dimension need room for it, and so do counts of the whole."""
    found = made("x", inputs, "return x.double().sum(0)")
    views = tuple(map(torch.empty_like, found.source.given("a")))
    timed = found.source.timed_set("timed", views, 1, SetKind(Distribution.CROWDED_HIGH))[0]
    assert CROWDED_HIGH in found.domain.names and not found.domain.skipped
    for x in (found.book.contents.of(CROWDED_HIGH)[0][0], timed):
        numbers, counts = torch.unique(x, return_counts=True)
        most = numbers[counts.argmax()]
        given = found.source.given("a")[0].double()
        end = given.min() if bool((given <= 0).all()) else given.max()
        assert int(counts.max()) > 0.75 * x.numel() and float(most / end) >= of_end
        assert float((x == most).float().mean(0).min()) > 0.5


def ends_of(body: str, inputs: str = "torch.rand(64, 64)") -> tuple[int, int]:
    """Return how many numbers of the trial are 0, and 1."""
    found = made("x", inputs, body)
    (x,) = found.book.contents.of(CROWDED_HIGH)[0]
    assert CROWDED_HIGH in found.domain.names and f"{CROWDED_HIGH} x" not in found.domain.skipped
    return int((x == 0).sum()), int((x == 1).sum())


def test_the_ends_of_zero_to_one_come_at_some_places_among_the_largest() -> None:
    at_0, at_1 = ends_of("return x * 2")
    assert 64 < at_0 < 192 and 64 < at_1 < 192


def test_an_end_that_the_reference_refuses_does_not_come() -> None:
    assert ends_of("return x.log()")[0] == 0 < ends_of("return x.log()")[1]
    assert ends_of("return (1 - x).log()")[1] == 0 < ends_of("return (1 - x).log()")[0]
    assert ends_of("return x.logit()") == (0, 0)


@pytest.mark.parametrize("inputs", ["torch.randn(64, 64)", "torch.rand(64, 64) / 2", "torch.rand(64, 64) / 2 + 0.5"])
def test_numbers_of_another_range_have_no_such_ends(inputs: str) -> None:
    assert ends_of("return x * 2", inputs) == (0, 0)


def test_a_mask_has_a_clear_row_and_a_full_one_where_the_reference_takes_them() -> None:
    draws = "torch.randn(32, 64), torch.rand(32, 64) < 0.5"
    taken = made("x, mask", draws, "return (x * mask).sum(-1) / mask.sum(-1).clamp_min(1)")
    mask = taken.book.contents.of(CROWDED)[0][1]
    assert not taken.domain.skipped and bool(mask.all(-1).any()) and bool((~mask).all(-1).any())
    refused = made("x, mask", draws, "return x.masked_fill(~mask, -torch.inf).softmax(-1)")
    mask = refused.book.contents.of(CROWDED)[0][1]
    assert not refused.domain.skipped and bool(mask.all(-1).any()) and bool(mask.any(-1).all())


def test_a_mask_that_ends_in_a_dimension_of_one_has_rows_all_the_same() -> None:
    draws = "torch.randn(32, 64, 4), torch.rand(32, 64, 1) < 0.5"
    found = made("x, mask", draws, "return (x * mask).sum(1) / mask.sum(1).clamp_min(1)")
    mask = found.book.contents.of(CROWDED)[0][1]
    assert (
        bool(mask.all(1).any())
        and bool((~mask).all(1).any())
        and not found.domain.not_varied | found.domain.only_as_drawn
    )
    assert 0.05 < float((found.source.nominal("a")[1] != found.source.given("a")[1]).float().mean()) < 0.25


@pytest.mark.parametrize("width", [1, 2, 28])
def test_short_rows_are_crowded_and_none_of_three_or_more_is_one_number(width: int) -> None:
    found = made("x", f"torch.randn(4096, {width})", "return x * 2")
    for trial in (CROWDED, CROWDED_HIGH):
        x = found.book.contents.of(trial)[0][0]
        assert float((x != found.source.nominal(trial)[0]).float().mean()) > 0.25
        assert width < 8 or not bool((x == x[:, :1]).all(-1).any())


def in_one_lane(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a product whose every sum is one running float32 number."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k]
    return total


@pytest.mark.parametrize("secret", range(3))
def test_a_plain_product_of_crowded_matrices_is_right(secret: int) -> None:
    """Terms that are mostly one number would have one rounding error each, and a running sum all of them."""
    judged = Judged("a, b", "torch.randn(32, 4096), torch.randn(4096, 32)", "return a @ b", secret=bytes([secret]))
    assert all(judged.passes(trial, in_one_lane) for trial in (CROWDED, CROWDED_HIGH))
