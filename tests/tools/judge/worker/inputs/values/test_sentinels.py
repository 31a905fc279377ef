"""Sentinels among whole numbers: they stay where an input is always alike, and none is tried between them and the others."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.arrangements.areas import with_areas
from ridgeline.tools.judge.worker.inputs.arrangements.crowds import ways_to_crowd
from ridgeline.tools.judge.worker.inputs.arrangements.lifts import lifted_whole
from ridgeline.tools.judge.worker.inputs.arrangements.moved_copies import first_of_each_copy, with_copies
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.input_ways import InputWays
from ridgeline.tools.judge.worker.inputs.parameter_ways import ways_at_first
from ridgeline.tools.judge.worker.inputs.values.orders import (
    has_full_row,
    ways_in_order,
    ways_of_drawn_order,
    with_part_changed,
)
from ridgeline.tools.judge.worker.inputs.values.structure import order_of, range_without_sentinels
from ridgeline.tools.judge.worker.inputs.variation import Way, lowered, ways_to_vary
from ridgeline.tools.records.trial_names import CROWDED, CROWDED_HIGH

EMPTY = 2**31 - 1
SENTINELS = {
    "labels of which some do not count": (-100, 0, 4000, 0.2),
    "two labels of which some do not count": (-100, 0, 2, 0.2),
    "pixels without a label": (255, 0, 21, 0.1),
    "two labels, and pixels without one": (255, 0, 2, 0.3),
    "empty slots": (EMPTY, 0, 2048, 0.3),
    "parents, and roots that have none": (-1000, 0, 64, 0.05),
    "tokens, and padding that is far from them": (0, 1000, 1100, 0.3),
}


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbers_of(case: str, seed: int = 0, shape: tuple[int, ...] = (16, 32)) -> torch.Tensor:
    """Return whole numbers with a case's sentinels."""
    sentinel, low, high, share = SENTINELS[case]
    drawn = torch.randint(low, high, shape, generator=generator(seed))
    return torch.where(torch.rand(shape, generator=generator(seed)) < share, sentinel, drawn)


def assert_none_between(changed: torch.Tensor, case: str) -> None:
    sentinel, low, high, _ = SENTINELS[case]
    assert bool(((changed == sentinel) | ((changed >= low) & (changed < high))).all())


@pytest.mark.parametrize("case", SENTINELS)
def test_numbers_that_are_always_alike_are_lowered_beside_their_sentinels(case: str) -> None:
    tensor, sentinel = numbers_of(case), SENTINELS[case][0]
    for way in ways_to_vary(tensor, 0):
        drawn = [way(tensor, generator(seed)) for seed in range(8)]
        assert not all(torch.equal(each, tensor) for each in drawn)
        for each in drawn:
            assert_none_between(each, case)
            assert torch.equal(each == sentinel, tensor == sentinel)


@pytest.mark.parametrize("case", SENTINELS)
def test_a_buffer_is_drawn_beside_its_sentinels_and_crowded_around_another_number(case: str) -> None:
    tensor, sentinel = numbers_of(case), SENTINELS[case][0]
    for way in ways_at_first(tensor, is_buffer=True, stays_in_order=True):
        for each in (way.draw(tensor, generator(seed)) for seed in range(8)):
            assert_none_between(each, case)
            assert torch.equal(each == sentinel, tensor == sentinel)


@pytest.mark.parametrize("case", SENTINELS)
@pytest.mark.parametrize("trial", [CROWDED, CROWDED_HIGH])
def test_nothing_is_crowded_around_a_sentinel(trial: str, case: str) -> None:
    tensor, sentinel = numbers_of(case), SENTINELS[case][0]
    for is_alike in (False, True):
        for way in ways_to_crowd(trial, tensor, is_alike=is_alike):
            for each in (way(tensor, generator(seed)) for seed in range(8)):
                assert_none_between(each, case)
                assert not bool(((each == sentinel) & (tensor != sentinel)).any())
                assert not is_alike or torch.equal(each == sentinel, tensor == sentinel)


def test_the_lowest_of_drawn_numbers_is_never_written_over_a_sentinel() -> None:
    first, second = (numbers_of("empty slots", seed) + 9 * (numbers_of("empty slots", seed) < EMPTY) for seed in (1, 2))
    ways = InputWays((first,), (second,))
    for seed in range(40):
        changed = ways.varied_in_way(0, first, generator(seed))
        assert torch.equal(changed == EMPTY, first == EMPTY)
        assert int(changed.min()) == 0


def test_drawn_numbers_are_lowered_to_0_beside_a_sentinel_below_it_and_not_above_one() -> None:
    def lowest(sentinel: int) -> int:
        draws = [numbers_of("tokens, and padding that is far from them", seed) for seed in (1, 2)]
        first, second = (torch.where(each == 0, sentinel, each) for each in draws)
        changed = InputWays((first,), (second,)).varied_in_way(0, first, generator(3))
        return int(changed[changed != sentinel].min())

    assert lowest(-100) == 0
    assert lowest(0) >= 1000


def padded(sentinel: int, order: int) -> torch.Tensor:
    """Return rows in order of numbers below 100, padded at the sentinel's end, one of them wholly."""
    rows = torch.full((6, 12), sentinel)
    for row, count in zip(rows, (12, 7, 3, 1, 0, 5), strict=True):
        row[:count] = torch.randperm(100, generator=generator(count))[:count]
    return rows.sort(-1, descending=order < 0).values


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("sentinel", [EMPTY, 10**12, -100])
def test_rows_in_order_are_drawn_anew_beside_what_they_are_padded_with(sentinel: int, order: int) -> None:
    rows = padded(sentinel, order)
    ways: tuple[Way, ...] = ways_in_order(rows, order)
    assert len(ways) == 2
    for way in ways:
        assert not any(torch.equal(way(rows, generator(seed)), rows) for seed in range(8))
        for seed in range(8):
            for changed in (way(rows, generator(seed)), with_part_changed(rows, rows, generator(seed), way=way)):
                assert torch.equal(changed == sentinel, rows == sentinel)
                own = changed[changed != sentinel]
                assert int(own.min()) >= 0 and int(own.max()) < 100
                assert order_of(changed[:3]) == order and torch.equal(
                    changed.sort(-1, descending=order < 0).values, changed
                )
                distinct = [torch.unique(row[row != sentinel]).numel() for row in changed]
                assert distinct == [12, 7, 3, 1, 0, 5], "what had no repeats has none"


def test_rows_are_in_order_also_where_the_last_one_is_padding_alone() -> None:
    rows = padded(EMPTY, 1)[[0, 1, 2, 3, 5, 4]]
    assert order_of(rows) == 1 and order_of(rows.flip(-1)) == -1
    assert order_of(torch.full((3, 4), EMPTY)) == 0
    rows[1, 3] = 0
    assert order_of(rows) == 0


def test_the_last_offset_is_no_sentinel_however_far_it_is() -> None:
    offsets = torch.tensor([0, 1, 3, 4, 6, 7, 9, 10, 4096])
    drawn = torch.stack([ways_in_order(offsets, 1)[0](offsets, generator(seed)) for seed in range(8)])
    assert int(drawn[:, 1:-1].max()) > 100 and bool((drawn[:, -1] == 4096).all())


@pytest.mark.parametrize("offsets", [[0, 1, 3, 4, 6, 7, 9, 10, 4096, 4096], [0, 0, 100, 102, 104, 106]])
def test_bags_at_an_end_may_be_empty_without_a_loss_of_others(offsets: list[int]) -> None:
    rows = torch.tensor(offsets)
    drawn = torch.stack([ways_in_order(rows, 1)[0](rows, generator(seed)) for seed in range(32)])
    inner = drawn[:, 2:-2]  # neither an end nor what was as it is
    assert int(inner.max()) - int(inner.min()) > offsets[-1] / 2
    assert bool((inner.diff(dim=-1) == 0).any()), "bags are empty in the middle too"


@pytest.mark.parametrize("order", [1, -1])
def test_rows_of_numbers_that_are_far_from_each_other_keep_what_they_are_padded_with(order: int) -> None:
    rows = torch.randint(0, 4000, (8, 12), generator=generator(0))
    rows = (
        torch.where(torch.arange(12) < torch.arange(4, 12).view(-1, 1), rows, -100)
        .sort(-1, descending=order < 0)
        .values
    )
    for way in ways_in_order(rows, order):
        for seed in range(8):
            changed = way(rows, generator(seed))
            assert torch.equal(changed == -100, rows == -100) and int(changed[changed != -100].min()) >= 0


@pytest.mark.parametrize("numbers", [[0, 9, 2**63 - 1], [0, 4, 2**63 - 1, 2**63 - 1]])
def test_a_row_up_to_the_largest_number_of_64_bits_stays_in_order(numbers: list[int]) -> None:
    rows = torch.tensor(numbers)
    for way in ways_in_order(rows, 1):
        for seed in range(8):
            changed = way(rows, generator(seed)).tolist()
            assert changed == sorted(changed) and changed[0] == 0 and changed[-1] == 2**63 - 1


def test_numbers_over_more_than_63_bits_are_lowered_and_lifted_within_their_range() -> None:
    keys = torch.randint(-(2**63), 2**62, (64, 32), generator=generator(0))
    low, high = int(keys.min()), int(keys.max())
    for seed in range(8):
        lower = lowered(keys, generator(seed), low=low)
        lifted = lifted_whole(keys, generator(seed), ends=(low, high))
        assert bool((lower <= keys).all()) and float((lower < keys).double().mean()) > 0.9
        assert low <= int(lifted.min()) and int(lifted.max()) <= high
        whole = lowered(torch.tensor([0, 2**63 - 1, 5]), generator(seed), low=0)
        assert int(whole.min()) >= 0 and int(whole[2]) <= 5


def test_a_row_of_padding_alone_keeps_no_bag_of_the_others_from_being_empty() -> None:
    rows = torch.tensor([[0, 3, 6, 9, 12], [EMPTY] * 5])
    drawn = torch.stack([ways_in_order(rows, 1)[0](rows, generator(seed)) for seed in range(16)])
    assert bool((drawn[:, 0].diff(dim=-1) == 0).any())
    assert bool((drawn[:, 1] == EMPTY).all())


def test_a_rows_own_ends_stay_beside_padding_and_two_of_them_leave_nothing_to_draw() -> None:
    rows = torch.tensor([[0, 5, 9, 12, EMPTY, EMPTY], [0, 3, 6, 12, EMPTY, EMPTY]])
    for way in ways_in_order(rows, 1):
        for seed in range(8):
            changed = way(rows, generator(seed))
            assert torch.equal(changed[:, [0, 3, 4, 5]], rows[:, [0, 3, 4, 5]])
    assert ways_in_order(torch.tensor([[0, 9, EMPTY, EMPTY], [0, 7, EMPTY, EMPTY]]), 1) == ()


@pytest.mark.parametrize("order", [1, -1])
def test_a_full_row_repeats_none_of_what_it_is_padded_with(order: int) -> None:
    counts = torch.tensor([12, 7, 3, 1, 5, 0]).view(-1, 1)
    rows = torch.where(torch.arange(12) < counts, torch.arange(12) + 3 * counts, EMPTY)
    rows = rows if order > 0 else rows.flip(-1)
    (way,) = ways_of_drawn_order(rows, order, lambda: False)
    for seed in range(16):
        changed = way(rows, generator(seed))
        assert torch.equal(changed == EMPTY, rows == EMPTY)
        assert not torch.equal(changed, rows)


def test_a_row_is_full_beside_what_it_is_padded_with() -> None:
    assert has_full_row(torch.tensor([7, 8, 9, 10, EMPTY, EMPTY]), 1)
    assert not has_full_row(torch.tensor([7, 8, 12, 13, EMPTY, EMPTY]), 1)


def test_an_input_with_a_sentinel_is_no_copy_of_one_that_fills_its_range_nor_holds_numbers_beside_its_own() -> None:
    pixels, labels = (
        torch.randint(0, 256, (32, 64), generator=generator(0)),
        numbers_of("pixels without a label", 0, (32, 64)),
    )
    forms = [InputForm.of(pixels, pixels.flip(0)), InputForm.of(labels, labels.flip(0))]
    assert first_of_each_copy((pixels, labels), forms, {0, 1}) == {}
    for seed in range(4):
        assert_none_between(with_copies((pixels, labels), generator(seed), firsts={1: 0})[1], "pixels without a label")


def test_an_area_holds_no_sentinel_in_place_of_others() -> None:
    labels = numbers_of("pixels without a label", 0, (8, 64, 64))
    form = InputForm.of(labels, labels.flip(0))
    for seed in range(4):
        (changed,) = with_areas((labels,), generator(seed), chosen={0}, forms=[form])
        assert not bool(((changed == 255) & (labels != 255)).any())


@pytest.mark.parametrize("base", [10, 16])
@pytest.mark.parametrize("count", [5, 7])
def test_the_largest_of_powers_is_no_sentinel_beside_the_others(base: int, count: int) -> None:
    powers = torch.tensor([base**n for n in range(count)] * 16)
    assert range_without_sentinels(powers) == (1, base ** (count - 1))
    assert range_without_sentinels(torch.cat((powers, torch.tensor([-(10**9)] * 16)))) == (1, base ** (count - 1))
    with_place = torch.cat((powers, torch.tensor([0, 2, 3, 4, 5, 6, 7, 8, 9] * 16)))
    assert range_without_sentinels(with_place) == (0, base ** (count - 1))


def test_the_largest_of_powers_beyond_31_bits_is_no_sentinel() -> None:
    assert range_without_sentinels(torch.tensor([10**n for n in range(19)] * 16)) == (1, 10**18)
    assert range_without_sentinels(torch.tensor([*range(16), 10**18] * 16)) == (0, 15)


def test_two_rare_numbers_far_above_the_others_are_classes_unless_the_larger_is_the_largest_of_a_type() -> None:
    numbers = torch.randint(0, 10, (64, 32), generator=generator(0))
    numbers[0, 0], numbers[1, 1] = 30000, 30900
    assert range_without_sentinels(numbers) == (0, 30900)
    assert range_without_sentinels(torch.where(numbers == 30900, 2**15 - 1, numbers)) == (0, 9)


def test_numbers_that_follow_each_other_have_no_sentinel_however_large_they_are() -> None:
    for first in range(2**60, 2**60 + 300):
        numbers = torch.arange(first, first + 40).repeat(2)
        assert range_without_sentinels(numbers) == (first, first + 39)


def test_the_largest_of_a_type_is_a_sentinel_beside_a_number_that_is_as_far_below_0() -> None:
    ends = torch.tensor([-(2**63), *range(16), 2**63 - 1])
    assert range_without_sentinels(ends) == (0, 15)


def test_a_number_below_0_alone_is_a_sentinel_where_it_comes_twice_beside_numbers_that_come_once() -> None:
    labels = torch.tensor([300, 1200, -100, 3900, 2500, -100, 700])
    assert range_without_sentinels(labels) == (300, 3900)
    assert range_without_sentinels(labels[3:]) == (-100, 3900)
    assert range_without_sentinels(torch.where(labels < 0, 0, labels)) == (0, 3900)
    assert range_without_sentinels(torch.where(labels == 300, -1, labels)) == (-100, 3900)


def test_two_numbers_beside_a_sentinel_are_a_range_where_they_come_often() -> None:
    labels = torch.tensor([0, 1] * 8 + [-100])
    assert range_without_sentinels(labels) == (0, 1)
    assert range_without_sentinels(torch.tensor([3, 5, 900])) == (3, 900)
    assert range_without_sentinels(torch.tensor([0, 2, 5] * 8)) == (0, 5)
    assert range_without_sentinels(torch.tensor([0, 1, 100] * 16)) == (0, 100), "a third class"
    assert range_without_sentinels(torch.tensor([0, 99, 100] * 16)) == (0, 100)
    assert range_without_sentinels(torch.tensor([0, 1, 255] * 16)) == (0, 1)


@pytest.mark.parametrize("sentinels", [(-100, EMPTY), (-100, 255), (-200, -100), (254, 255), (-100, -1, 254, 255)])
def test_two_sentinels_at_either_end_or_both_are_known(sentinels: tuple[int, ...]) -> None:
    labels = torch.randint(0, 21, (64, 32), generator=generator(0))
    for place, sentinel in enumerate(sentinels):
        labels[place::9] = sentinel
    low, high = range_without_sentinels(labels) or (0, 0)
    assert low in (-1, 0) and high == 20
    for way in ways_to_vary(labels, 0):
        changed = way(labels, generator(1))
        is_kept = (labels < low) | (labels > high)
        assert torch.equal(changed[is_kept], labels[is_kept])
        assert int(changed[~is_kept].min()) >= low and int(changed[~is_kept].max()) <= high


def test_two_groups_of_two_numbers_are_one_range() -> None:
    assert range_without_sentinels(torch.tensor([0, 1, 100, 101] * 16)) == (0, 101)
    assert range_without_sentinels(torch.tensor([0] * 400 + [5, 254, 255] * 16)) == (0, 255)
    assert range_without_sentinels(torch.tensor([7])) == (7, 7)


def test_of_a_narrow_range_a_number_that_comes_once_among_millions_is_seen() -> None:
    labels = torch.arange(1 << 22) % 10
    labels[:32] = torch.tensor([254, 255] * 16)
    assert range_without_sentinels(labels) == (0, 9)
    labels[1 << 21] = 120
    assert range_without_sentinels(labels) == (0, 255)
