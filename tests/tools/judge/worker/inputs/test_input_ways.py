"""The forms that two draws of an input show, and the ways that are left once some are refused."""

from __future__ import annotations

import functools

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.inputs import variation
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.input_ways import Change, InputWays
from ridgeline.tools.judge.worker.inputs.values.transforms import with_one_row, with_one_run


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def floats(seed: int) -> torch.Tensor:
    return torch.randn(8, generator=generator(seed))


def permutation(seed: int) -> torch.Tensor:
    return torch.randperm(16, generator=generator(seed))


def test_numbers_that_are_drawn_need_no_way() -> None:
    form = InputForm.of(floats(1), floats(2))
    assert not form.needs_ways and not form.is_whole and form.order == 0


def test_a_permutation_is_one_whether_it_is_drawn_or_not() -> None:
    drawn, alike = InputForm.of(permutation(1), permutation(2)), InputForm.of(permutation(1), permutation(1))
    assert drawn.is_permuted and not drawn.is_alike and not drawn.is_map
    assert alike.is_permuted and alike.is_alike and alike.is_map


def test_offsets_are_whole_numbers_in_order_and_a_mask_has_none() -> None:
    offsets = torch.arange(0, 64, 4)
    assert InputForm.of(offsets, offsets).is_ordered_whole
    mask = torch.arange(16) > 7
    form = InputForm.of(mask, mask)
    assert form.is_mask and form.order == 0 and form.needs_ways


def test_an_input_that_is_always_alike_is_kept_once_every_way_is_refused() -> None:
    table = floats(1)
    ways = InputWays((floats(1), table), (floats(2), table))
    assert ways.varied == (1,) and ways.kept == () and ways.changes(1) and not ways.changes(0)
    while ways.varied:
        ways.give_up_way(1)
    assert ways.kept == (1,) and ways.refused == {1} and not ways.may_change(1) and ways.may_change(0)


def test_no_other_input_changes_while_one_is_tried() -> None:
    ways = InputWays((floats(1), floats(3), floats(4)), (floats(2), floats(3), floats(4)))
    with ways.varying_only(1):
        assert ways.changes(1) and not ways.changes(2) and not ways.may_change(0)
    assert ways.changes(2) and ways.may_change(0)


def drawn(seed: int, count: int, below: int) -> torch.Tensor:
    return torch.randperm(below, generator=generator(seed))[:count]


def test_few_numbers_of_a_wide_range_are_distinct_by_accident() -> None:
    few, many = ((drawn(1, count, 4096), drawn(2, count, 4096)) for count in (8, 512))
    assert InputForm.of(*many).is_distinct and not InputForm.of(*few).is_distinct
    assert InputForm.of(*few, lambda: True).is_distinct, "places that are written to"
    row = tuple(each.unsqueeze(0) for each in few)
    assert not InputForm.of(*row).is_distinct and InputForm.of(*few).may_be_lifted
    twice = few[1].clone()
    twice[1] = twice[0]
    assert not InputForm.of(few[0], twice, lambda: True).is_distinct


def test_few_numbers_of_a_wide_range_are_lowered_as_others_are() -> None:
    lengths = tuple(drawn(seed, 8, 4096) + 256 for seed in (1, 2))
    ways = InputWays(lengths[:1], lengths[1:])
    assert int(ways.varied_in_way(0, lengths[0], generator(3)).min()) == 0 and ways.left == ()


@pytest.mark.parametrize(("least", "lowest"), [(0, 300), (1, 0), (256, 0)])
def test_numbers_are_lowered_to_what_the_range_that_they_are_drawn_from_does_not_hold(least: int, lowest: int) -> None:
    lengths = tuple(drawn(seed, 8, 4096) + 300 for seed in (1, 2))
    lengths[0][3] = 300
    ways = InputWays(lengths[:1], lengths[1:], drawn_from=lambda: {0: (least, 4395)})
    assert int(ways.varied_in_way(0, lengths[0], generator(3)).min()) == lowest


def test_of_numbers_an_eighth_of_which_is_lowered_no_more_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def between(low: int, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        counts.append(tensor.numel())
        return lower(low, tensor, generator)

    lower = variation._between
    monkeypatch.setattr(variation, "_between", between)
    changed = variation.some_lowered(torch.full((64, 64), 9), generator(3), low=0)
    assert int((changed < 9).sum()) <= sum(counts) < 1024 and changed.shape == (64, 64)


def test_nominal_inputs_of_a_wide_range_from_0_on_are_as_drawn() -> None:
    source = made(
        "x, y", "torch.randint(2**40, (8, 32)), torch.randint(9, 2**40, (8, 32))", "return x % 7 + y % 7"
    ).source
    [x, y], [given, other] = source.nominal("some"), source.given("some")
    assert torch.equal(x, given) and 0.05 < float((y != other).float().mean()) < 0.25


@pytest.mark.parametrize("has_rows", [False, True])
@pytest.mark.parametrize("none", [-1, 95])
def test_links_that_lead_up_alone_stay_so_beside_no_link_and_beside_a_last_place(*, has_rows: bool, none: int) -> None:
    def links(seed: int) -> torch.Tensor:
        steps = torch.randint(1, 6, (4, 96) if has_rows else (96,), generator=generator(seed))
        above = torch.arange(96) + steps
        return torch.where(above < 96, above, none)

    first, second = links(1), links(2)
    ways = InputWays((first,), (second,))
    places = torch.arange(96)
    for seed in range(16):
        changed = ways.varied_in_way(0, first, generator(seed))
        assert bool(((changed >= places) | (changed < 0)).all()), "a lower one would lead in a ring"


@pytest.mark.parametrize("shape", [(64, 8), (8, 64), (1024, 16)])
@pytest.mark.parametrize("n_below", [1, 4])
def test_counts_near_a_dimensions_size_are_no_links(shape: tuple[int, int], n_below: int) -> None:
    size = min(shape)
    for seed in range(24):
        first, second = (
            torch.randint(size - n_below, size + 1, shape, generator=generator(2 * seed + k)) for k in (0, 1)
        )
        ways = InputWays((first,), (second,))
        assert int(ways.varied_in_way(0, first, generator(seed)).min()) == 0


def test_distinct_numbers_whose_ways_are_all_refused_are_left_as_drawn() -> None:
    ways = InputWays((drawn(1, 512, 4096),), (drawn(2, 512, 4096),))
    assert ways.left == ()
    ways.give_up_way(0)
    ways.give_up_way(0)
    assert ways.left == (0,) and ways.kept == ()


def test_further_draws_show_whether_numbers_are_distinct_by_accident() -> None:
    by_rule = [functools.partial(drawn, seed, 64, 8192) for seed in range(3, 40)]
    by_chance = [lambda s=seed: torch.randint(8192, (64,), generator=generator(s)) for seed in range(3, 40)]
    pair = drawn(1, 64, 8192), drawn(2, 64, 8192)
    assert InputForm.of(*pair, further=by_rule).is_distinct
    assert not InputForm.of(*pair, lambda: True, further=by_chance).is_distinct
    assert not InputForm.of(*pair, further=by_rule[:8]).is_distinct, "too few of them"


@pytest.mark.parametrize("change", [with_one_row, with_one_run])
def test_rows_that_are_in_order_in_every_draw_stay_so_where_a_part_of_another_draw_comes_in(change: Change) -> None:
    def times(seed: int) -> tuple[torch.Tensor]:
        return (torch.rand(8, 96, generator=generator(seed)).cumsum(-1),)

    ways = InputWays(times(0), times(1))
    for seed in range(20):
        nominal, other = times(10 + seed)[0], times(50 + seed)[0]
        tweaked = ways.tweaked(0, nominal, other, change, generator(seed))
        assert int((tweaked != nominal).any(-1).sum()) == 1 and bool((tweaked.diff() >= 0).all())
