"""Work of blocks whose contents changed, beside that of blocks that count."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.tools.measure.answering import Answering
from tests.tools.measure.looping import CALLS, Memory, blocks_of, honest, run_all

from ridgeline.tools.measure import changed_work, changing_blocks
from ridgeline.tools.measure.alternation import AlternatingRun
from ridgeline.tools.measure.block_plan import BlockPlanner
from ridgeline.tools.measure.changed_work import (
    LEAST_TELLING,
    MAKING_CALLS,
    MORE_WORK_S,
    MORE_WORK_SHARE,
    ChangedBlock,
    worked_more,
    works_more,
)
from ridgeline.tools.measure.changing_blocks import ChangingBlocks
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.timed_side import Block, TimedCandidate, TimedSide
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.loop_time import LoopTime

KEPT_S, MADE_S = 1e-4, 2e-3
"""Processor time of a call that uses what was kept, and of one that makes it."""


def block(calls: int, ran_s: float) -> Block:
    return Block(calls=calls, took=LoopTime(parent_s=ran_s, own_s=ran_s), page_faults=0, ran_s=ran_s)


def candidate(
    *, call_s: float = KEPT_S, single_s: float = MADE_S, singles: int = 5, threads: int = 1
) -> TimedCandidate:
    timed = TimedCandidate(side=honest(Memory()), judge=Answering(3), threads=threads)  # type: ignore[arg-type]
    timed.blocks = [block(100, 100 * call_s)] * 3
    timed.singles = [block(1, single_s)] * singles
    return timed


def changed(*, made: float = 0.0, after: int = 60, call_s: float = KEPT_S, changing_s: float = 0.0) -> ChangedBlock:
    """Return a block of 100 calls, so many of which made everything anew after a change."""
    ran_s = 100 * call_s + made * (MADE_S - call_s)
    return ChangedBlock(calls=100, before=100 - after, ran_s=ran_s, lasted_s=ran_s, waited_s=0.0, changing_s=changing_s)


def test_calls_that_make_everything_anew_once_a_change_is_noticed_are_told_by_their_processor_time() -> None:
    timed, noticed = candidate(), [changed(made=60)] * 4
    assert works_more(timed, noticed)
    finding = worked_more(timed, noticed).finding
    assert finding.code is ReasonCode.WORKED_AHEAD
    assert "take 2 ms of processor time, in blocks without one 0.1 ms" in finding.reason


@pytest.mark.parametrize("made", [0, 1, MAKING_CALLS])
def test_one_that_compares_all_parameters_may_make_once_more_what_it_keeps(made: int) -> None:
    assert not works_more(candidate(), [changed(made=made)] * 6)


def test_a_third_of_the_blocks_decide() -> None:
    more, same = changed(made=60), changed()
    assert works_more(candidate(), [more, more, same, same, same, same])
    assert not works_more(candidate(), [more, same, same, same])


def test_a_change_near_a_blocks_end_tells_nothing() -> None:
    late = changed(made=20, after=20)
    assert not works_more(candidate(single_s=0.0), [late] * 6)
    assert works_more(candidate(single_s=0.0), [late] * 6 + [changed(made=60)] * LEAST_TELLING)


def test_few_blocks_tell_nothing() -> None:
    assert not works_more(candidate(), [changed(made=60)] * (LEAST_TELLING - 1))


def test_without_blocks_to_compare_with_nothing_is_told() -> None:
    assert not works_more(candidate(singles=0), [changed(made=60)] * 6)
    timed = candidate()
    timed.blocks.clear()
    assert not works_more(timed, [changed(made=60)] * 6)


def test_cores_are_granted_what_waking_up_and_a_change_beside_them_take() -> None:
    allowed_s = MAKING_CALLS * MADE_S + MORE_WORK_SHARE * 60 * KEPT_S + MORE_WORK_S
    calls = allowed_s / (MADE_S - KEPT_S)
    assert not works_more(candidate(), [changed(made=calls * 0.99)] * 4)
    assert works_more(candidate(), [changed(made=calls * 1.01)] * 4)
    assert not works_more(candidate(), [changed(made=calls * 1.01, changing_s=1e-3)] * 4)


@pytest.mark.parametrize(("waited", "is_blamed"), [(0.0, True), (0.09, True), (0.11, False)])
def test_blocks_in_which_threads_waited_for_a_core_tell_nothing(waited: float, *, is_blamed: bool) -> None:
    block = changed(made=60)
    assert works_more(candidate(), [replace(block, waited_s=waited * block.lasted_s)] * 4) is is_blamed


def test_threads_may_spin_for_one_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_work, "measurement_cores", lambda: (0, 1))
    work_s = MAKING_CALLS * MADE_S + MORE_WORK_SHARE * 60 * KEPT_S + 2 * MORE_WORK_S
    more = changed(made=(work_s + 0.5e-3) / (MADE_S - KEPT_S))
    assert works_more(candidate(threads=2), [more] * 4)
    assert not works_more(candidate(threads=2), [replace(more, waited_s=1e-3)] * 4)


def test_a_change_is_noted_with_the_calls_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(changing_blocks, "process_clock_s", lambda _pid: next(clock))
    memory = Memory()
    blocks = blocks_of(memory, honest(memory))
    run_all(blocks)
    assert [each.ran_s for each in blocks.worked] == [1] * blocks.n_wanted
    assert all(0 < each.before < each.calls <= CALLS for each in blocks.worked)
    assert {each.changing_s > 0 for each in blocks.worked} == {True, False}  # no call runs while it is held


SAME = [changed()] * 4
SELDOM, OFTEN = [changed(made=60)] * 2 + [changed()] * 2, [changed(made=60)] * 4


def run_of(first: list[ChangedBlock], second: list[ChangedBlock], monkeypatch: pytest.MonkeyPatch) -> AlternatingRun:
    """Return a run over, whose candidate showed the first in its changing blocks and shows the second when looked at again."""
    run, timed = object.__new__(AlternatingRun), candidate()
    blocks = ChangingBlocks(
        timed=timed, planner=BlockPlanner(n_sets=3, most_calls=2), worked=list(first), tries=6, changed={(0, True)}
    )

    def look(again: ChangingBlocks, _other: TimedSide, wanted: int) -> None:
        assert (again.tries, again.changed, wanted) == (0, set(), again.n_wanted)
        again.worked.extend(second)

    monkeypatch.setattr(run, "_changing", [(blocks, timed)], raising=False)
    monkeypatch.setattr(run, "_look", look)
    return run


@pytest.mark.parametrize(("first", "second"), [(SAME, OFTEN), (SELDOM, SAME)])
def test_one_look_in_which_it_works_as_much_decides_for_a_side(
    first: list[ChangedBlock], second: list[ChangedBlock], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(first, second, monkeypatch).expect_same_work()


@pytest.mark.parametrize(("first", "second"), [(SELDOM, SELDOM), (OFTEN, OFTEN)])
def test_a_side_that_works_more_in_two_looks_is_blamed(
    first: list[ChangedBlock], second: list[ChangedBlock], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Distrusted, match="makes anew where it notices a change"):
        run_of(first, second, monkeypatch).expect_same_work()
