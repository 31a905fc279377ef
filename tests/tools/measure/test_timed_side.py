"""Blocks of one side: what they ask for, and which seconds count."""

import os
import time
from collections.abc import Sequence

import pytest
from tests.tools.measure.answering import Answering

from ridgeline.tools.judge.messages import Idle, Renew
from ridgeline.tools.judge.replies import Idled, Renewed
from ridgeline.tools.machine.gpu_state import GpuState
from ridgeline.tools.measure.block_plan import BlockKind, BlockPlan
from ridgeline.tools.measure.request_cost import LoopCost
from ridgeline.tools.measure.timed_side import Block, TimedCandidate, TimedSide, WarmUp
from ridgeline.tools.runner.loop_time import LoopTime

N_SETS = 24


class CountingJudge(Answering):
    """A judge without memory: it counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__(N_SETS)
        self.orders: list[tuple[int, ...]] = []
        self.order: list[str] = []  # of waits and what else a test notes

    def renew(self, request: Renew) -> Renewed:
        self.orders.append(request.order)
        return Renewed(slowdown=0.0)

    def idle(self, _request: Idle) -> Idled:
        self.order.append("wait")
        return Idled(seconds=0.5)


class RecordingSide:
    """A side that only writes down which loops it was asked for."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loops: list[tuple[int, ...]] = []

    def loop(self, sets: Sequence[int]) -> LoopTime:
        self.loops.append(tuple(sets))
        return LoopTime(parent_s=1e-3, own_s=1e-3)


def test_a_block_calls_its_sets_in_the_order_in_which_they_were_written() -> None:
    judge, side = CountingJudge(), RecordingSide()
    timed = TimedCandidate(side=side, judge=judge)
    plan = BlockPlan(order=tuple(reversed(range(N_SETS))), calls=7)
    timed.renew(plan.order)
    timed.run_block(plan)
    timed.run_block(BlockPlan(order=plan.order, calls=1, kind=BlockKind.SINGLE))
    assert judge.orders == [plan.order]
    assert side.loops == [(23, 22, 21, 20, 19, 18, 17), (23,)]
    assert [[b.calls for b in blocks] for blocks in (timed.blocks, timed.singles)] == [[7], [1]]


def test_of_a_block_of_wanted_contents_no_time_is_kept() -> None:
    timed = TimedCandidate(side=RecordingSide(), judge=CountingJudge())
    timed.run_block(BlockPlan(order=tuple(range(N_SETS)), calls=7, kind=BlockKind.EXTRA))
    assert len(timed.side.loops) == 1  # type: ignore[attr-defined]
    assert [*timed.blocks, *timed.singles, *timed.beside] == []


@pytest.mark.parametrize("kind", [BlockKind.COUNTED, BlockKind.SINGLE, BlockKind.BESIDE])
def test_a_block_knows_what_processor_time_it_took(kind: BlockKind) -> None:
    class Working(RecordingSide):
        def loop(self, sets: Sequence[int]) -> LoopTime:
            end_s = time.thread_time() + 0.01
            while time.thread_time() < end_s:
                pass
            return super().loop(sets)

    timed = TimedCandidate(side=Working(), judge=CountingJudge())
    timed.run_block(BlockPlan(order=tuple(range(N_SETS)), calls=7, kind=kind))
    (block,) = [*timed.blocks, *timed.singles, *timed.beside]
    assert block.ran_s >= 0.01
    assert block.waited_s >= 0
    assert block.parent_waited_s >= 0


def test_the_judge_waits_for_the_device_before_a_gpu_is_observed() -> None:
    judge = CountingJudge()

    def observe() -> GpuState:
        judge.order.append("observe")
        return GpuState()

    timed = TimedCandidate(side=RecordingSide(), judge=judge, observe=observe)
    timed.run_block(BlockPlan(order=tuple(range(N_SETS)), calls=2))
    assert judge.order == ["wait", "observe"]


@pytest.mark.parametrize("is_candidate", [True, False])
def test_only_waits_beside_blocks_that_count_are_noted(is_candidate: bool) -> None:
    judge = CountingJudge()
    timed = (TimedCandidate if is_candidate else TimedSide)(side=RecordingSide(), judge=judge)
    for calls in (1, 7, 1):
        kind = BlockKind.SINGLE if calls == 1 else BlockKind.COUNTED
        plan = BlockPlan(order=tuple(range(N_SETS)), calls=calls, kind=kind)
        timed.prepare_block(plan)
        timed.run_block(plan)
    assert timed.waits_s == [0.5]
    assert judge.order == ["wait"] * 3


@pytest.mark.parametrize(("call_s", "most_s"), [(1.0, 3.0), (1.9, 5.7), (7.0, 14.0), (20.0, 20.0)])
def test_the_warm_up_of_a_very_slow_kernel_is_a_call_or_three(call_s: float, most_s: float) -> None:
    class Slow(RecordingSide):
        def loop(self, sets: Sequence[int]) -> LoopTime:
            super().loop(sets)
            return LoopTime(parent_s=len(sets) * call_s, own_s=len(sets) * call_s)

    side = Slow()
    TimedCandidate(side=side, judge=CountingJudge()).warm_up(WarmUp())
    assert sum(len(sets) for sets in side.loops) * call_s <= most_s


def side_with(parent_s: float, *, is_candidate: bool, request_s: float = 0.0, ticket_s: float = 0.0) -> TimedSide:
    """Return a side of blocks of thirty calls that claims half of what the parent's clock says."""
    timed = [Block(calls=30, took=LoopTime(parent_s=parent_s, own_s=parent_s / 2), page_faults=0)] * 6
    return (TimedCandidate if is_candidate else TimedSide)(
        side=None,
        judge=CountingJudge(),
        blocks=timed,
        cost=LoopCost(request_s=request_s, ticket_s=ticket_s),
    )


def test_every_second_of_a_candidates_block_counts_by_the_parents_clock() -> None:
    side = side_with(0.030 + 60e-6, is_candidate=True)
    assert side.per_call_s() == pytest.approx([(0.030 + 60e-6) / 30] * 6)


def test_the_trusted_references_own_clock_counts() -> None:
    assert side_with(0.030, is_candidate=False).per_call_s() == pytest.approx([0.5e-3] * 6)


def test_what_a_request_usually_costs_is_taken_off_a_candidates_block() -> None:
    side = side_with(0.030 + 60e-6, is_candidate=True, request_s=60e-6)
    assert side.per_call_s() == pytest.approx([1e-3] * 6)


def test_a_candidate_never_counts_below_its_own_clock() -> None:
    side = side_with(0.030, is_candidate=True, request_s=0.024)
    assert side.per_call_s() == pytest.approx([0.5e-3] * 6)  # 0.2 ms by the parent's, 0.5 ms by its own


def test_nothing_is_taken_off_the_trusted_reference() -> None:
    assert side_with(0.030, is_candidate=False, request_s=1.0).per_call_s() == pytest.approx([0.5e-3] * 6)


@pytest.mark.parametrize("is_candidate", [True, False])
def test_a_tickets_cost_is_taken_off_every_call_of_either_side(is_candidate: bool) -> None:
    side = side_with(0.030, is_candidate=is_candidate, ticket_s=0.1e-3)
    assert side.per_call_s() == pytest.approx([(0.9 if is_candidate else 0.4) * 1e-3] * 6)


def test_at_most_half_of_a_call_is_its_tickets() -> None:
    assert side_with(0.030, is_candidate=True, ticket_s=0.8e-3).per_call_s() == pytest.approx([0.5e-3] * 6)


def test_a_candidates_tickets_cost_what_they_cost_the_trusted_runner_of_the_same_loop() -> None:
    trusted = side_with(0.030, is_candidate=False, ticket_s=0.1e-3)
    candidate = side_with(0.030, is_candidate=True, ticket_s=0.4e-3)
    candidate.costs_from = trusted  # its requests take half of each block
    assert candidate.per_call_s() == pytest.approx([0.4e-3] * 6)


def block(parent_s: float, own_s: float) -> Block:
    return Block(calls=10, took=LoopTime(parent_s=parent_s, own_s=own_s), page_faults=0)


def test_a_request_costs_what_it_costs_a_trusted_runner_in_the_same_measurement() -> None:
    trusted = side_with(0.0, is_candidate=False)
    trusted.is_apart = True
    trusted.blocks = [block(0.0110, 0.0102), block(0.0111, 0.0101), block(0.0112, 0.0100)]
    honest = side_with(0.0, is_candidate=True, request_s=0.5)
    honest.costs_from = trusted
    honest.blocks = [block(0.0110, 0.0099)]
    assert honest.per_call_s() == pytest.approx([1.0e-3])  # 1 ms of its 1.1 are not the request's
    assert trusted.per_call_s() == pytest.approx([1.02e-3, 1.01e-3, 1.02e-3])


def test_before_the_trusted_runners_first_block_a_request_costs_what_was_measured_for_the_problem() -> None:
    side = side_with(0.030 + 60e-6, is_candidate=True, request_s=60e-6)
    side.costs_from = TimedSide(side=None, judge=CountingJudge())
    assert side.per_call_s() == pytest.approx([1e-3] * 6)


def test_making_room_before_the_first_loop_is_no_warm_up() -> None:
    class MakingRoom(RecordingSide):
        def loop(self, sets: Sequence[int]) -> LoopTime:
            super().loop(sets)
            return LoopTime(parent_s=0.5 if len(self.loops) == 1 else 1e-3, own_s=1e-3)

    side = MakingRoom()
    TimedCandidate(side=side, judge=CountingJudge()).warm_up(WarmUp(calls=10, seconds=0.2))
    assert len(side.loops) > 100  # of a millisecond each


@pytest.mark.parametrize(("waited_ms", "is_busy"), [(0.4, False), (2.0, True)])
def test_waking_up_after_a_stop_makes_no_machine_busy(waited_ms: float, is_busy: bool) -> None:
    side = side_with(0.012, is_candidate=False)
    side.blocks = [
        Block(calls=1, took=LoopTime(parent_s=0.012, own_s=0.012), page_faults=0, waited_s=waited_ms / 1e3)
    ] * 6
    assert side.has_waited() is is_busy
