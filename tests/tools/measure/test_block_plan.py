"""The calls of a block: how many, on which sets, in which order."""

import random

import pytest

from ridgeline.tools.measure.block_plan import LEAST_CALLS, LONGEST_BLOCK, SLOW_CALL_S, BlockPlanner, most_calls

BLOCK_S = 0.012


@pytest.mark.parametrize("call_s", [1e-6, 1e-4, 6e-4, 1e-2, 1.0])
@pytest.mark.parametrize("n_sets", [3, 11, 51, 64, 512])
def test_a_block_lasts_long_enough_or_asks_for_two_thirds_of_the_sets(call_s: float, n_sets: int) -> None:
    calls = most_calls([call_s], n_sets, block_s=BLOCK_S)
    assert (LEAST_CALLS if call_s < SLOW_CALL_S else 1) <= calls <= 2 * n_sets / 3
    assert calls in (LEAST_CALLS, int(2 * n_sets / 3)) or calls * call_s >= BLOCK_S


@pytest.mark.parametrize("slower", [1, 3, 10, 100])
def test_the_faster_side_decides_within_reason(slower: float) -> None:
    calls = most_calls([1e-4, slower * 1e-4], 512, block_s=BLOCK_S)
    assert calls == most_calls([slower * 1e-4, 1e-4], 512, block_s=BLOCK_S)
    assert calls * 1e-4 >= BLOCK_S or calls * slower * 1e-4 == pytest.approx(LONGEST_BLOCK * BLOCK_S, rel=0.1)
    assert calls * slower * 1e-4 <= max(LONGEST_BLOCK * BLOCK_S, BLOCK_S + slower * 1e-4)


def test_number_sets_and_order_differ_from_block_to_block() -> None:
    planner = BlockPlanner(n_sets=24, most_calls=15, rng=random.Random(1))
    plans = [planner.draw(planner.count()) for _ in range(60)]
    assert {plan.calls for plan in plans} == set(range(10, 16))
    assert len({plan.sets for plan in plans}) == 60
    assert all(sorted(plan.order) == list(range(24)) for plan in plans)
    assert all(plan.sets + plan.unasked == plan.order for plan in plans)
    assert {set_index for plan in plans for set_index in plan.unasked} == set(range(24))


def test_the_fewest_sets_leave_one_unasked_and_the_number_of_calls_open() -> None:
    planner = BlockPlanner(n_sets=3, most_calls=most_calls([0.1], 3, block_s=BLOCK_S), rng=random.Random(1))
    assert {planner.count() for _ in range(30)} == {1, 2}
    assert len(planner.draw(2).unasked) == 1
