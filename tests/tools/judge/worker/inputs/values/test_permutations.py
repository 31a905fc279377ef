"""Permutations that are always alike, or drawn: single places change, so that a sample of a row does not tell the rest."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import N_SETS, made

from ridgeline.tools.judge.worker.inputs.values.permutations import exchanged, exchanged_in_rows
from ridgeline.tools.judge.worker.inputs.values.transforms import with_one_run

MAP = "torch.arange(64 * 256).view(64, 128, 2).transpose(1, 2).reshape(64, 256)"
STEP = 32


def few_exchanged(given: torch.Tensor, other: torch.Tensor) -> int:
    """Return how many rows look like one of the usual ones where they are sampled, and are not."""
    usual = given[0] - given[0, 0]
    looks_usual = (other[:, ::STEP] - other[:, :1] == usual[::STEP]).all(-1)
    return int((looks_usual & (other - other[:, :1] != usual).any(-1)).sum())


@pytest.mark.parametrize("pixels", ["torch.randint(0, 256, (64, 256), dtype=torch.uint8)", "torch.randn(64, 256)"])
def test_single_places_of_a_map_are_exchanged_in_trials_and_in_timed_sets(pixels: str) -> None:
    found = made("pixels, places", f"{pixels}, {MAP}", "return pixels.flatten()[places]")
    given = found.source.given("a")[1]
    sets = [tuple(map(torch.empty_like, found.source.given("a"))) for _ in range(N_SETS)]
    filling = found.source.fill("renewal", N_SETS)
    for index, views in enumerate(sets):
        filling.write(index, views)
    trials = [found.source.nominal(str(label)) for label in range(8)]
    alone = [found.book.contents.of("alone_places")[0], (sets[0][0], filling.another(0, 1, sets[0][1]))]
    for _, other in (*trials, *sets, *alone):
        assert torch.equal(other.flatten().sort().values, given.flatten().sort().values)
        assert not torch.equal(other, given)
    assert sum(few_exchanged(given, other) for _, other in trials) > 8
    assert sum(few_exchanged(given, other) for _, other in sets) > 4
    assert len({tuple(other.flatten().tolist()) for _, other in sets}) == N_SETS


@pytest.mark.parametrize("places", ["torch.randperm(512)", "torch.arange(512).view(2, 256).mT.flatten()", MAP])
def test_a_tweaked_permutation_has_two_places_of_one_row_exchanged(places: str) -> None:
    found = made("x, places", f"torch.randn(64 * 256), {places}", "return x[places]")
    given = found.source.given("a")[1]
    for other in (found.source.tweaked("a", "b")[1], found.source.tweaked("a", "c", with_one_run)[1]):
        differ = (given != other).nonzero()
        assert len(differ) == 2 and torch.equal(differ[0, :-1], differ[1, :-1])
        assert torch.equal(other.flatten().sort().values, given.flatten().sort().values)


def test_a_map_whose_rows_have_to_keep_their_places_has_them_exchanged_in_rows() -> None:
    body = (
        "assert torch.equal(places // 256, torch.arange(64)[:, None].expand(64, 256))",
        "return x.gather(1, places % 256)",
    )
    found = made("x, places", f"torch.randn(64, 256), {MAP}", *body)
    assert not found.domain.not_varied | found.domain.only_as_drawn
    given, other = found.source.given("a")[1], found.source.nominal("b")[1]
    assert not torch.equal(given, other) and torch.equal(given.sort(-1).values, other.sort(-1).values)


@pytest.mark.parametrize("shape", [(2,), (7, 1), (3, 2), (5, 64)])
@pytest.mark.parametrize("way", [exchanged, exchanged_in_rows])
def test_exchanged_places_are_a_permutation_always_another_one(way, shape: tuple[int, ...]) -> None:
    given = torch.arange(torch.Size(shape).numel()).view(shape)
    for seed in range(20):
        other = way(given, torch.Generator().manual_seed(seed))
        assert torch.equal(other.flatten().sort().values, given.flatten()) and not torch.equal(other, given)


@pytest.mark.parametrize("ids", ["torch.rand(16, 64).argsort(1)", "torch.arange(64).repeat(16, 1).flip(1)"])
def test_rows_that_are_permutations_each_stay_so_in_every_trial(ids: str) -> None:
    found = made("x, ids", f"torch.randn(16, 64), {ids}", "return x.gather(1, ids.argsort(1))")
    for trial in found.domain.names:
        rows = found.book.contents.of(trial)[0][1]
        assert torch.equal(rows.sort(1).values, torch.arange(64).expand(16, 64)), trial


SLOTS = "(torch.randperm(256)[:64, None] * 16 + torch.arange(16))"
DRAWN = {
    "slots": f"{SLOTS}.flatten()",
    "tables": f"{SLOTS}.view(8, 128)",
    "all slots": "(torch.randperm(64)[:, None] * 16 + torch.arange(16)).flatten()",
}


@pytest.mark.parametrize("kind", DRAWN)
def test_distinct_numbers_that_are_drawn_in_blocks_are_exchanged_in_trials_and_in_timed_sets(kind: str) -> None:
    found = made("x, slots", f"torch.randn(4096), {DRAWN[kind]}", "return x[slots]")
    assert not found.domain.not_varied | found.domain.only_as_drawn
    views = tuple(map(torch.empty_like, found.source.given("a")))
    trials = [found.source.nominal(f"trial {i}")[1] for i in range(12)]
    sets = [found.source.timed_set(f"timed {i}", views, 4, None)[1] for i in range(12)]
    shares = []
    for slots in (*trials, *sets):
        assert slots.unique().numel() == slots.numel() and int(slots.min()) >= 0 and int(slots.max()) < 4096
        is_in_block = slots.view(-1, 16).diff() == 1
        shares.append(1 - float(is_in_block.float().mean()))
    assert min(shares) < 0.1 and max(shares) > 0.5
    assert sum(share > 0 for share in shares[:12]) > 7  # rows alone in another order are whole blocks, in few of them
    assert bool((found.source.given("a")[1].view(-1, 16).diff() == 1).all())


@pytest.mark.parametrize("kind", ["slots", "tables"])
def test_of_tweaked_distinct_numbers_two_are_exchanged_and_one_is_new(kind: str) -> None:
    found = made("x, slots", f"torch.randn(4096), {DRAWN[kind]}", "return x[slots]")
    given = found.source.given("a")[1]
    for other in (found.source.tweaked("a", "b")[1], found.source.tweaked("a", "c", with_one_run)[1]):
        assert 2 <= int((given != other).sum()) <= 3 and other.unique().numel() == other.numel()
        assert int((~torch.isin(other, given)).sum()) == 1


def test_distinct_numbers_whose_order_the_reference_asserts_stay_as_drawn_and_are_named() -> None:
    body = "assert bool((slots.view(-1, 16).diff() == 1).all()), 'blocks'", "return x[slots]"
    found = made("x, slots", f"torch.randn(4096), {DRAWN['slots']}", *body)
    assert "blocks" in found.domain.only_as_drawn["slots"]
    assert torch.equal(found.source.nominal("a")[1], found.source.given("a")[1])
    assert not torch.isin(*(found.source.tweaked("a", label)[1] for label in ("b", "c"))).all(), "another draw"
