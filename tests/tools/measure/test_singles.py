"""Blocks of one call: what shows work done ahead, what a busy machine, and what neither."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

import pytest
from tests.tools.measure.answering import Answering

from ridgeline.tools.errors import MachineBusyError
from ridgeline.tools.measure import singles
from ridgeline.tools.measure.alternation import AlternatingRun
from ridgeline.tools.measure.block_plan import BlockKind, BlockPlanner
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.singles import (
    LATE_LOOKS,
    MOST_LOOKS,
    SINGLES,
    Look,
    has_late_singles,
    look,
    worked_ahead,
)
from ridgeline.tools.measure.timed_side import Block, TimedCandidate, TimedSide
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode
from ridgeline.tools.runner.loop_time import LoopTime

CALLS = 20
CPU, CUDA = DeviceKind.CPU, DeviceKind.CUDA


def block(ms: float, *, calls: int = 1, ran_ms: float | None = None, waited_ms: float = 0.0) -> Block:
    """Return a block that took so long, on two cores where nothing else is said."""
    return Block(
        calls=calls,
        took=LoopTime(parent_s=ms / 1e3, own_s=ms / 1e3),
        page_faults=0,
        waited_s=waited_ms / 1e3,
        ran_s=(2 * ms if ran_ms is None else ran_ms) / 1e3,
    )


def side(
    call_ms: float,
    singles: list[Block],
    *,
    kind: DeviceKind = CPU,
    long: Block | None = None,
    of: type[TimedSide] = TimedCandidate,
) -> TimedSide:
    """Return a side of two threads with blocks of twenty calls that take so long each."""
    judge = Answering(n_sets=30)
    judge.device_kind = kind
    timed = of(side=None, judge=judge, threads=2, singles=singles)  # type: ignore[arg-type]
    timed.blocks = timed.beside = [long or block(CALLS * call_ms, calls=CALLS)] * 10
    return timed


def eager(*single_ms: float, waited_ms: float = 0.0, kind: DeviceKind = CPU) -> TimedSide:
    """Return the other side, of calls of 0.6 ms; the processor time of each of them is the same."""
    singles = [block(ms, ran_ms=1.2, waited_ms=waited_ms) for ms in single_ms or [0.7] * 10]
    return side(0.6, singles, kind=kind)


@pytest.mark.parametrize("theirs_ms", [0.7, 2.0])  # the other's are late themselves where its threads wake slowly
@pytest.mark.parametrize("kind", [CPU, CUDA])
def test_blocks_of_one_call_that_take_as_long_as_many_calls_show_work_done_ahead(
    theirs_ms: float, kind: DeviceKind
) -> None:
    late = side(0.3, [block(12.0)] * 10, kind=kind)
    assert has_late_singles(late)
    assert look(late, eager(*[theirs_ms] * 10, kind=kind)) is Look.AHEAD
    fault = worked_ahead(late)
    assert "the only call of a block takes 12 ms, a call of a long block 0.3 ms" in str(fault)
    assert ("of processor time 24 ms and 0.6 ms: work for later calls" in str(fault)) is (kind is CPU)
    assert fault.finding.code is ReasonCode.WORKED_AHEAD


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([block(0.6)] * 10, eager()),  # what going on after a stop costs
        ([block(0.6)] * 8 + [block(9.0)] * 2, eager()),  # something now and then
        ([block(2.4, ran_ms=0.7)] * 10, eager(*[2.0] * 10)),  # going on after a stop takes long
        ([block(0.6, ran_ms=5.0)] * 10, eager()),  # threads that spin: the call takes no longer
    ],
)
def test_calls_that_take_as_long_alone_as_among_others_are_even(ours: list[Block], theirs: TimedSide) -> None:
    assert look(side(0.3, ours), theirs) is Look.EVEN


@pytest.mark.parametrize("theirs", [eager(), eager(*[9.0] * 10, waited_ms=8.0)])
def test_waits_for_a_core_are_no_work_whatever_the_other_side_met(theirs: TimedSide) -> None:
    """The figures are those of an honest kernel that was once refused: 2.94 ms alone, 0.647 ms among others."""
    ours = side(0.647, [block(2.94, ran_ms=1.3, waited_ms=3.1)] * 10)
    assert has_late_singles(ours)
    assert look(ours, theirs) is Look.EVEN


def test_waits_of_the_parent_are_no_work() -> None:
    single = Block(calls=1, took=LoopTime(parent_s=9e-3, own_s=3e-4), page_faults=0, ran_s=6e-4, parent_waited_s=8.5e-3)
    assert look(side(0.3, [single] * 10), eager()) is Look.EVEN


def test_work_done_ahead_shows_however_long_its_threads_wait_for_cores() -> None:
    """Four times its own time it waited, so that its clock tells nothing: its processor time does."""
    ours = side(2.4, [block(40.0, ran_ms=23.0, waited_ms=57.0)] * 10, long=block(48.0, calls=CALLS, ran_ms=24.0))
    assert look(ours, eager(*[30.0] * 10, waited_ms=29.0)) is Look.AHEAD


def test_threads_that_spin_until_another_gets_a_core_are_not_blamed_while_the_machine_is_busy() -> None:
    """Beside a thread that waited 4 ms the other one spun: more processor time than a call's, less than a block's half."""
    spinning = block(12.0 + 4.0, calls=CALLS, ran_ms=24.0 + 4.0, waited_ms=4.0)
    ours = side(0.8, [block(4.6, ran_ms=5.2, waited_ms=4.0)] * 10, long=spinning)
    assert look(ours, eager(*[4.0] * 10, waited_ms=3.0)) is Look.UNDECIDED


def test_work_done_ahead_shows_where_the_clock_is_all_noise() -> None:
    """On a busy machine calls of a block of two took as long as a block of one, by their waits."""
    ours = side(30.0, [block(30.0, ran_ms=14.2, waited_ms=20.0)] * 10, long=block(60.0, calls=2, ran_ms=14.5))
    assert has_late_singles(ours)
    assert look(ours, eager(*[30.0] * 10, waited_ms=29.0)) is Look.AHEAD


def test_a_pool_that_spins_beside_a_serial_kernel_is_not_blamed_though_that_is_most_of_its_time() -> None:
    """Sixty threads spin for a millisecond until the one that works gets its core, in every block: 0.6 ms a call is work."""
    spinning = block(13.0, calls=CALLS, ran_ms=72.0, waited_ms=9.0)
    busy = side(0.6, [block(4.0, ran_ms=60.6, waited_ms=9.0)] * 10, long=spinning)
    assert look(busy, eager(waited_ms=2.0)) is Look.UNDECIDED
    quiet = side(0.6, [block(1.6, ran_ms=60.6)] * 10, long=block(13.0, calls=CALLS, ran_ms=72.0))
    assert look(quiet, eager()) is Look.EVEN


def test_part_of_a_block_done_ahead_shows_where_nobody_waits() -> None:
    assert look(side(0.6, [block(4.0)] * 10), eager()) is Look.AHEAD


@pytest.mark.parametrize(("ahead", "shown"), [(2, Look.EVEN), (3, Look.AHEAD), (6, Look.AHEAD)])
def test_who_works_ahead_at_random_passes_only_where_most_blocks_are_honest(ahead: int, shown: Look) -> None:
    assert look(side(0.6, [block(12.0)] * ahead + [block(0.7)] * (10 - ahead)), eager()) is shown


SLEPT = block(9.0, ran_ms=0.6)


def test_time_that_neither_work_nor_waiting_explains_is_told_by_whom_other_programs_held_up() -> None:
    """Who sleeps takes no processor time, and waits for no core: eager beside it is on time, unless the machine is busy."""
    assert look(side(0.3, [SLEPT] * 10), eager()) is Look.UNEXPLAINED
    assert look(side(0.3, [SLEPT] * 10), eager(waited_ms=2.0)) is Look.UNDECIDED
    assert look(side(0.3, [SLEPT] * 10), eager(*[0.7] * 7, *[9.0] * 3)) is Look.UNDECIDED, "late without a wait"
    waited = block(9.0, ran_ms=0.6, waited_ms=2.0)
    assert look(side(0.3, [waited] * 10), eager()) is Look.UNDECIDED, (
        "eager has one thread, and the other core is taken"
    )


@pytest.mark.parametrize(("threads", "others", "shown"), [(8, 2, Look.UNEXPLAINED), (8, 9, Look.UNDECIDED)])
def test_waits_of_more_threads_than_cores_are_each_others_unless_eager_has_as_many(
    threads: int, others: int, shown: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight threads that spin for 3 ms each on two cores: 24 ms, and none of the others' calls; idle pools do neither."""
    monkeypatch.setattr(singles, "measurement_cores", lambda: (0, 1))
    long = block(12.0 + 6.0, calls=CALLS, ran_ms=24.0 + 12.0, waited_ms=40.0)
    ours, theirs = side(0.9, [block(12.0, ran_ms=24.0, waited_ms=40.0)] * 10, long=long), eager()
    ours.threads, theirs.threads = threads, others
    assert look(ours, theirs) is shown


def test_more_processor_time_than_one_call_has_on_all_cores_is_work_for_others() -> None:
    """Half a call and 1 ms on each core that its threads can use: 0.3 ms and 2 ms, of one thread 0.3 ms and 1 ms."""
    for threads, ran_ms, shown in ((2, 2.8, Look.UNEXPLAINED), (2, 3.0, Look.AHEAD), (1, 2.0, Look.AHEAD)):
        ours = side(0.3, [block(3.0, ran_ms=ran_ms)] * 10)
        ours.threads = threads
        assert look(ours, eager()) is shown, (threads, ran_ms)


def test_on_a_gpu_a_late_look_tells_nothing_while_the_other_side_waits_for_cores() -> None:
    late = side(0.3, [block(12.0)] * 10, kind=CUDA)
    assert look(late, eager(waited_ms=5.0, kind=CUDA)) is Look.UNDECIDED
    assert look(side(0.3, [block(0.6)] * 10, kind=CUDA), eager(waited_ms=5.0, kind=CUDA)) is Look.EVEN


def test_on_a_gpu_most_blocks_have_to_be_late() -> None:
    for late, shown in ((4, Look.EVEN), (6, Look.AHEAD)):
        ours = side(0.3, [block(12.0)] * late + [block(0.6)] * (10 - late), kind=CUDA)
        assert has_late_singles(ours)
        assert look(ours, eager(kind=CUDA)) is shown


def test_blocks_of_the_judges_are_late_by_the_clock_that_a_candidates_are_late_by() -> None:
    late = Block(calls=1, took=LoopTime(parent_s=6e-3, own_s=1e-3), page_faults=0)
    usual = Block(calls=10, took=LoopTime(parent_s=11e-3, own_s=10e-3), page_faults=0)
    prompt = Block(calls=1, took=LoopTime(parent_s=1.1e-3, own_s=1e-3), page_faults=0)
    ours = side(1.0, [late] * SINGLES, kind=CUDA, long=usual)
    theirs = side(1.0, [late], kind=CUDA, long=usual, of=TimedSide)
    assert look(ours, theirs) is Look.EVEN, "a busy machine, which both sides met"
    theirs.singles = [prompt]
    assert look(ours, theirs) is Look.AHEAD


WORKED, WAITED, SPUN, PROMPT = (
    block(12.0),
    block(12.0, ran_ms=0.6, waited_ms=12.0),
    block(4.0, ran_ms=6.0, waited_ms=4.0),
    block(0.4),
)
LOOK = 2 * SINGLES


def run_of(
    blocks: Iterator[Block], monkeypatch: pytest.MonkeyPatch, *, theirs_waited_ms: Iterator[float] | None = None
) -> AlternatingRun:
    """Return a run whose candidate has these blocks of one call after late ones, two of which come last.

    Eager's waited for so long.
    """
    theirs_waited_ms = theirs_waited_ms or repeat(0.0)
    run = object.__new__(AlternatingRun)
    run.planner = BlockPlanner(n_sets=30, most_calls=CALLS)
    ours, theirs = side(0.3, [WORKED] * (SINGLES - 2)), eager()
    ours.beside = []
    own = chain([WORKED] * 2, blocks)

    def add(timed: TimedSide, other: TimedSide, calls: int, kind: BlockKind) -> None:
        assert (timed, other) in ((ours, theirs), (theirs, ours))
        assert (calls == 1) is (kind is BlockKind.SINGLE)
        if kind is BlockKind.BESIDE:
            assert timed is ours
            timed.beside.append(block(0.6 * calls, calls=calls))
        else:
            theirs_now = block(0.7, ran_ms=1.2, waited_ms=0.0 if timed is ours else next(theirs_waited_ms))
            timed.singles.append(next(own) if timed is ours else theirs_now)

    monkeypatch.setattr(run, "_able_to_work_ahead", lambda: [(ours, theirs)])
    monkeypatch.setattr(run, "_block", add)
    return run


def test_a_side_that_works_ahead_in_every_look_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Distrusted, match="done ahead"):
        run_of(repeat(WORKED, LATE_LOOKS * LOOK), monkeypatch).expect_even()


@pytest.mark.parametrize("last", [PROMPT, WAITED])
def test_one_look_in_which_a_side_is_even_decides_for_it(last: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = repeat(WORKED, (LATE_LOOKS - 1) * LOOK)
    run_of(chain(ahead, repeat(SPUN, LOOK), repeat(last, LOOK)), monkeypatch).expect_even()


def test_a_look_that_tells_nothing_counts_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = repeat(WORKED, LATE_LOOKS * LOOK)
    with pytest.raises(Distrusted, match="done ahead"):
        run_of(chain(repeat(SPUN, (MOST_LOOKS - LATE_LOOKS) * LOOK), ahead), monkeypatch).expect_even()


def test_a_machine_on_which_nothing_shows_is_at_fault_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MachineBusyError, match="the machine is too busy to time this kernel: .* once other programs"):
        run_of(repeat(SPUN, MOST_LOOKS * LOOK), monkeypatch).expect_even()


@pytest.mark.parametrize("busy_look", range(0, MOST_LOOKS, 3))
def test_a_busy_machine_in_one_look_of_all_is_enough_to_blame_nobody(
    busy_look: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = chain(repeat(0.0, busy_look * LOOK), repeat(3.0, LOOK), repeat(0.0))
    with pytest.raises(MachineBusyError, match="too busy"):
        run_of(repeat(SLEPT, MOST_LOOKS * LOOK), monkeypatch, theirs_waited_ms=waits).expect_even()


@pytest.mark.parametrize("ahead", range(LATE_LOOKS))
def test_a_candidate_whose_looks_tell_nothing_on_a_quiet_machine_is_at_fault_itself(
    ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = chain(repeat(WORKED, ahead * LOOK), repeat(SLEPT, (MOST_LOOKS - ahead) * LOOK))
    figures = "the only call of a block takes 9 ms, a call of a long block 0.6 ms, of processor time 0.6 ms and 1.2 ms"
    with pytest.raises(Distrusted, match=f"{figures}.* neither sleep nor spin") as raised:
        run_of(blocks, monkeypatch).expect_even()
    assert raised.value.finding.code is ReasonCode.WORKED_AHEAD
