"""Blocks: how many calls a block has and which sets they use."""

import os

import pytest
from tests.tools.measure.answering import Answering

from ridgeline.tools.judge.messages import Renew
from ridgeline.tools.judge.replies import Renewed
from ridgeline.tools.measure.timed_side import LEAST_CALLS, Block, TimedSide, WarmUp, calls_per_block
from ridgeline.tools.runner.wire import LoopTime

N_SETS = 24


class CountingJudge(Answering):
    """A judge without memory: it counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__(N_SETS)
        self.renewals = 0

    def renew(self, _request: Renew) -> Renewed:
        self.renewals += 1
        return Renewed(slowdown=0.0)


@pytest.mark.parametrize("per_call_s", [1e-6, 1e-4, 6e-4, 1e-2, 0.3])
@pytest.mark.parametrize("n_sets", [3, 11, 51, 64, 512])
def test_a_block_never_uses_a_set_twice(per_call_s: float, n_sets: int) -> None:
    calls = calls_per_block(per_call_s, n_sets, block_s=0.012)
    assert LEAST_CALLS <= calls <= n_sets
    assert calls == n_sets or calls * per_call_s >= 0.012


class RecordingSide:
    """A side that only writes down which loops it was asked for."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loops: list[tuple[int, int]] = []

    def loop(self, first_set: int, calls: int) -> LoopTime:
        self.loops.append((first_set, calls))
        return LoopTime(parent_s=1e-3, own_s=1e-3)


def test_every_block_begins_with_the_set_that_its_renewal_wrote_first() -> None:
    judge, sides = CountingJudge(), (RecordingSide(), RecordingSide())
    timed = [TimedSide(side=s, judge=judge, is_tracked=True, calls=7 + i) for i, s in enumerate(sides)]
    for _ in range(5):
        for side in timed:
            side.renew()
            assert side.run_block(lambda sets: sets) == tuple(range(side.calls))
    assert [side.loops for side in sides] == [[(0, 7)] * 5, [(0, 8)] * 5]
    assert judge.renewals == 10


def test_a_slow_kernel_needs_three_calls_a_block_and_a_very_slow_one_as_many_as_last_a_second() -> None:
    assert [calls_per_block(call_s, 51, block_s=0.01) for call_s in (0.1, 0.4, 0.6, 2.0, 20.0)] == [3, 3, 2, 1, 1]


@pytest.mark.parametrize(("call_s", "most_s"), [(1.0, 3.0), (1.9, 5.7), (7.0, 14.0), (20.0, 20.0)])
def test_the_warm_up_of_a_very_slow_kernel_is_a_call_or_three(call_s: float, most_s: float) -> None:
    class Slow(RecordingSide):
        def loop(self, first_set: int, calls: int) -> LoopTime:
            super().loop(first_set, calls)
            return LoopTime(parent_s=calls * call_s, own_s=calls * call_s)

    side = Slow()
    TimedSide(side=side, judge=CountingJudge(), is_tracked=True).warm_up(WarmUp(), block_s=0.012)
    assert sum(calls for _, calls in side.loops) * call_s <= most_s


def side_with(parent_s: float, *, is_tracked: bool, request_s: float = 0.0) -> TimedSide:
    """Return a side of blocks of thirty calls that claims half of what the parent's clock says."""
    timed = [Block(calls=30, took=LoopTime(parent_s=parent_s, own_s=parent_s / 2), page_faults=0)] * 6
    return TimedSide(
        side=None,
        judge=CountingJudge(),
        is_tracked=is_tracked,
        blocks=timed,
        request_s=request_s,
    )


def test_every_second_of_a_candidates_block_counts_by_the_parents_clock() -> None:
    side = side_with(0.030 + 60e-6, is_tracked=True)
    assert side.per_call_s() == pytest.approx([(0.030 + 60e-6) / 30] * 6)


def test_the_trusted_references_own_clock_counts() -> None:
    assert side_with(0.030, is_tracked=False).per_call_s() == pytest.approx([0.5e-3] * 6)


def test_what_a_request_usually_costs_is_taken_off_a_candidates_block() -> None:
    side = side_with(0.030 + 60e-6, is_tracked=True, request_s=60e-6)
    assert side.per_call_s() == pytest.approx([1e-3] * 6)


def test_a_candidate_never_counts_below_its_own_clock() -> None:
    side = side_with(0.030, is_tracked=True, request_s=0.024)
    assert side.per_call_s() == pytest.approx([0.5e-3] * 6)  # 0.2 ms by the parent's, 0.5 ms by its own


def test_nothing_is_taken_off_the_trusted_reference() -> None:
    assert side_with(0.030, is_tracked=False, request_s=1.0).per_call_s() == pytest.approx([0.5e-3] * 6)
