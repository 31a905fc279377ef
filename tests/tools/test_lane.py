"""Plans and rotations: what blocks look like and which sets they use."""

import pytest

from ridgeline.tools.arena import LoopTime
from ridgeline.tools.lane import OVERHEAD_LIMIT_S, Block, Lane, Rotation, make_plan

N_SETS = 24


class CountingArena:
    """An arena without memory: it counts what is asked of it."""

    n_sets = N_SETS

    def __init__(self) -> None:
        self.refills = 0
        self.poisoned = 0

    def refill(self) -> None:
        self.refills += 1

    def poison(self) -> None:
        self.poisoned += 1


@pytest.mark.parametrize("per_call_s", [1e-6, 1e-4, 6e-4, 1e-2, 1.0])
@pytest.mark.parametrize("n_sets", [3, 11, 51, 64])
def test_plan_never_uses_a_set_twice_unless_it_says_so(per_call_s: float, n_sets: int) -> None:
    plan = make_plan(per_call_s, n_sets, loop_s=0.004, shortest_loop_s=0.002)
    assert plan.rotates or plan.lead_in + 3 * plan.calls <= n_sets
    assert 3 * plan.calls * per_call_s >= 0.006 or plan.rotates
    assert plan.calls >= n_sets or not plan.rotates


def test_contents_are_renewed_before_any_set_is_seen_twice() -> None:
    arena = CountingArena()
    rotation = Rotation(arena=arena)
    seen: set[tuple[int, int]] = set()
    for _ in range(20):
        rotation.refresh(7)
        first = rotation.take(7)
        block = {(arena.refills, (first + i) % N_SETS) for i in range(7)}
        assert not block & seen
        seen |= block
        rotation.take(5)  # the reference's block
    assert arena.refills < 20
    assert arena.poisoned == arena.refills


def test_very_slow_kernel_needs_three_calls_a_block() -> None:
    plan = make_plan(2.0, 51, loop_s=0.01, shortest_loop_s=0.002)
    assert (plan.calls, plan.rotates) == (1, False)


def test_kernel_of_microseconds_rotates_over_all_sets_for_long_enough() -> None:
    plan = make_plan(1e-5, 64, loop_s=0.004, shortest_loop_s=0.002)
    assert plan.rotates
    assert plan.calls * 1e-5 >= 0.01
    assert plan.lead_in == 64  # one pass over fresh contents before the clock counts


def lane_with(blocks: list[tuple[float, float]], calls: int) -> Lane:
    timed = [
        Block(
            calls=calls,
            lead_in_calls=0,
            lead_in=None,
            short=LoopTime(parent_s=short, own_s=short),
            long=LoopTime(parent_s=long, own_s=long),
            page_faults=0,
        )
        for short, long in blocks
    ]
    return Lane(side=None, rotation=Rotation(arena=CountingArena()), is_tracked=True, blocks=timed)


def test_cost_of_a_request_is_taken_off_once_for_each_loop() -> None:
    lane = lane_with([(0.010 + 40e-6, 0.020 + 40e-6)] * 6, calls=10)
    assert lane.overhead_s() == pytest.approx(40e-6)
    assert lane.per_call_s() == pytest.approx([1e-3] * 6)


def test_dawdling_in_the_short_loop_cannot_buy_more_than_the_limit() -> None:
    lane = lane_with([(0.015, 0.020)] * 6, calls=10)
    assert lane.overhead_s() == OVERHEAD_LIMIT_S
    assert min(lane.per_call_s()) > 1e-3


def test_dawdling_in_the_long_loop_only_costs() -> None:
    lane = lane_with([(0.010, 0.030)] * 6, calls=10)
    assert lane.overhead_s() == 0
    assert min(lane.per_call_s()) > 1e-3
