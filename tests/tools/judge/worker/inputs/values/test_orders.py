"""Whole numbers in order: drawn anew between their ends, with empty and long gaps, as far as the reference takes that."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

OFFSETS = {
    "always alike": "torch.arange(0, 1025, 16)",
    "drawn": "torch.cat((torch.zeros(1).long(), torch.randint(8, 24, (64,)).cumsum(0)))",
    "always alike, in rows": "torch.arange(0, 1025, 16).repeat(3, 1)",
}
GAPS = "return o.diff(dim=-1) * 1.0"


def offsets(found: Made) -> list[torch.Tensor]:
    """Return the input as trials and as timed sets have it."""
    views = tuple(map(torch.empty_like, found.source.given("a")))
    trials = [found.book.contents.of(name)[0][0] for name in ("nominal_0", "tweaked_0", "tweaked_1", "shifted")]
    nominal = [found.source.nominal(f"trial {i}")[0] for i in range(12)]
    return [*trials, *nominal, *(found.source.timed_set(f"timed {i}", views, 4, None)[0] for i in range(16))]


@pytest.mark.parametrize("kind", OFFSETS)
def test_gaps_are_of_nothing_and_of_most_of_the_range(kind: str) -> None:
    found = made("o, x", f"{OFFSETS[kind]}, torch.randn(9)", GAPS)
    assert not found.domain.not_varied | found.domain.only_as_drawn
    each = offsets(found)
    gaps = [o.diff(dim=-1) for o in each]
    assert all(int(gap.min()) >= 0 for gap in gaps), "the order stays"
    assert all(bool((o[..., 0] == 0).all()) and int(o.max()) < 1536 for o in each), "so do the ends"
    for some in (gaps[4:16], gaps[16:]):
        assert sum(int((gap == 0).sum()) > 0 for gap in some) > 8
        assert max(float((gap.amax(-1) / gap.sum(-1)).max()) for gap in some) > 0.25


@pytest.mark.parametrize("kind", OFFSETS)
def test_no_gap_is_empty_where_the_reference_refuses_that(kind: str) -> None:
    bound = "assert bool((o.diff(dim=-1) > 0).all())"
    each = offsets(made("o, x", f"{OFFSETS[kind]}, torch.randn(9)", bound, GAPS))
    assert all(int(o.diff(dim=-1).min()) > 0 for o in each)
    assert max(float((o.diff(dim=-1).amax(-1) / o[..., -1]).max()) for o in each) > 0.25


def test_gaps_stay_below_twice_their_size_where_the_reference_asserts_that() -> None:
    bound = "assert bool((o.diff(dim=-1) < 32).all())"
    each = offsets(made("o, x", f"{OFFSETS['always alike']}, torch.randn(9)", bound, GAPS))
    assert all(0 < int(o.diff().min()) < 16 and int(o.diff().max()) < 32 for o in each)


def test_ids_of_drawn_segments_have_many_of_one() -> None:
    found = made("o, x", "torch.randint(0, 64, (1024,)).sort().values, torch.randn(9)", "return torch.eye(64)[o]")
    each = offsets(found)
    assert all(int(o.diff().min()) >= 0 for o in each)
    assert max(int(o.bincount().max()) for o in each) > 300


def test_places_that_are_written_to_once_are_never_written_twice() -> None:
    places = "torch.randperm(1000)[:64].sort().values + 3"
    each = offsets(made("o, x", f"{places}, torch.randn(9)", "return torch.zeros(1003).index_fill(0, o, 1.0)"))
    assert all(int(o.diff().min()) > 0 for o in each)
    assert max(float(o.diff().max()) for o in each) > 250


FOLLOWING = "torch.randint(0, 900, (32, 1)) + torch.arange(64), torch.randn(1024)"
READ = "return x[o].sum(-1)"
WRITTEN = "return torch.zeros(1024).index_put((o,), x[:64].expand(32, 64))"


def test_positions_that_follow_each_other_repeat_few_or_many_of_their_neighbours() -> None:
    found = made("o, x", FOLLOWING, READ)
    given = found.source.given("nominal_1")[0]
    assert not found.domain.not_varied | found.domain.only_as_drawn and bool((given.diff() == 1).all())
    shares = []
    for o in offsets(found)[:16]:
        steps = o.diff()
        assert set(steps.unique().tolist()) == {0, 1, 2}, "the order stays, and so do the ends of each row"
        assert bool((o[:, -1] - o[:, 0] == 63).all())
        shares.append(float((steps == 0).float().mean()))
    assert min(shares) < 0.01 and max(shares) > 0.1
    tweaked = found.book.contents.of("tweaked_1")[0][0]
    assert len((tweaked != given).any(-1).nonzero()) == 1


def test_rows_that_follow_each_other_repeat_them_beside_a_row_that_does_not() -> None:
    inputs = (
        "torch.randint(0, 900, (32, 1)) + torch.arange(64) * (1 + (torch.arange(32) == 7))[:, None], torch.randn(1200)"
    )
    found = made("o, x", inputs, READ)
    assert not found.domain.not_varied | found.domain.only_as_drawn
    assert sum(bool((o[8:].diff() == 0).any()) for o in offsets(found)[4:16]) > 9


def test_positions_that_follow_each_other_stay_where_they_are_written_to_and_are_named() -> None:
    found = made("o, x", FOLLOWING, WRITTEN)
    assert list(found.domain.only_as_drawn) == ["o"] and not found.domain.not_varied
    assert all(bool((o.diff() == 1).all()) for o in offsets(found))
