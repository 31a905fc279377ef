"""Blocks whose contents change while they run, with a side that is a loop in this process.

A call lasts for two looks at its ticket, between which contents change, and a late change waits for the block's end: no
order of the two threads is left to the machine's load.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence

import pytest
from tests.tools.measure.looping import CALLS, Looping, Memory, blocks_of, honest, run_all

from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.measure.changing_blocks import BLOCK_PARTS, CERTAIN_BLOCK_S, LONG_BLOCK_TRIES, PATIENCE, TRIES
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode
from ridgeline.tools.runner.loop_time import LoopTime

EVERY_WAY = {(part, is_held) for part in range(BLOCK_PARTS) for is_held in (False, True)}


def test_calls_on_what_lies_there_pass() -> None:
    memory = Memory()
    blocks = blocks_of(memory, honest(memory))
    run_all(blocks)
    assert (blocks.n_changed, memory.parameter) == (2 * BLOCK_PARTS, 1 + blocks.tries)


def test_parameters_kept_for_a_block_are_found() -> None:
    memory, kept = Memory(), [0.0]

    def call(index: int) -> None:
        memory.outputs[index] = 2 * memory.inputs[index] + kept[0]

    with pytest.raises(Distrusted, match="keeps nothing from call to call") as fault:
        run_all(blocks_of(memory, Looping(memory, call, lambda _: kept.__setitem__(0, memory.parameter))))
    assert "wrong for such contents" not in fault.value.finding.reason
    assert fault.value.finding.code is ReasonCode.WORKED_AHEAD


def test_inputs_kept_for_a_block_are_found_though_parameters_are_not() -> None:
    memory, kept = Memory(), list[float]()

    def call(index: int) -> None:
        memory.outputs[index] = 2 * kept[index] + memory.parameter

    for rng_seed in range(20):
        side = Looping(memory, call, lambda _: kept.__setitem__(slice(None), memory.inputs))
        with pytest.raises(Distrusted, match="keeps nothing from call to call"):
            run_all(blocks_of(memory, side, rng_seed=rng_seed))


def test_a_kernel_that_is_wrong_for_the_contents_is_told_so() -> None:
    memory = Memory()

    def call(index: int) -> None:
        memory.outputs[index] = 2 * memory.inputs[index] + 1

    with pytest.raises(Distrusted, match="nor was it in a call alone, without a change: it is wrong") as fault:
        run_all(blocks_of(memory, Looping(memory, call)))
    assert fault.value.finding.code is ReasonCode.WORKED_AHEAD


def test_a_kernel_that_rounds_too_much_for_the_contents_is_not_said_to_work_ahead() -> None:
    memory = Memory()

    def call(index: int) -> None:
        memory.outputs[index] = (2 * memory.inputs[index] + memory.parameter) * (1 + 1e-3)

    with pytest.raises(Distrusted, match="it is wrong for such contents") as fault:
        run_all(blocks_of(memory, Looping(memory, call)))
    assert fault.value.finding.code is ReasonCode.PRECISION_TOO_LOW


def test_calls_worked_off_in_the_first_one_are_found() -> None:
    memory = Memory()

    def work_off(sets: Sequence[int]) -> None:
        for index in sets:
            memory.outputs[index] = 2 * memory.inputs[index] + memory.parameter

    with pytest.raises(Distrusted):
        run_all(blocks_of(memory, Looping(memory, lambda _: None, work_off)))


def test_a_change_that_comes_after_the_last_call_began_tells_nothing() -> None:
    memory = Memory()
    side = honest(memory)
    memory.before_a_change = side.outlast
    blocks = blocks_of(memory, side)
    run_all(blocks)
    assert (blocks.n_changed, blocks.tries) == (0, 2 * BLOCK_PARTS * TRIES)


def test_a_block_that_is_over_too_soon_is_held_in_the_end() -> None:
    memory = Memory()
    side = honest(memory)
    memory.before_a_change = lambda: None if side.is_held else side.outlast()
    blocks = blocks_of(memory, side)
    run_all(blocks)
    assert blocks.changed == EVERY_WAY and blocks.tries > PATIENCE
    assert not side.is_held


def test_the_next_change_is_begun_in_the_first_call_where_one_came_too_late() -> None:
    """A call that makes what later ones keep is long, and those are over at once."""
    memory, begun = Memory(), list[int]()
    side = honest(memory)

    def come_late() -> None:
        if not side.is_held:
            begun.append(side.begun)
            side.outlast()

    memory.before_a_change = come_late
    run_all(blocks_of(memory, side))
    assert 1 in begun and max(begun) > 1


def test_a_held_side_goes_on_when_the_judge_fails() -> None:
    memory = Memory()
    side = honest(memory)

    def fail() -> None:
        assert side.is_held
        side.waits = False
        raise EngineError("out of memory")

    memory.before_a_change = fail
    blocks = blocks_of(memory, side)
    blocks.in_vain = PATIENCE
    with pytest.raises(EngineError, match="out of memory"):
        blocks.run(blocks.plan())
    assert not side.is_held


def test_tickets_taken_all_at_once_are_found() -> None:
    memory = Memory()
    side = honest(memory)

    def take_all(sets: Sequence[int]) -> LoopTime:
        side.take(len(sets))
        for index in sets:
            side.call(index)
        return side.end(sets)

    side.loop = take_all  # type: ignore[method-assign]
    with pytest.raises(Distrusted, match="takes tickets ahead") as fault:
        run_all(blocks_of(memory, side))
    assert fault.value.finding.code is ReasonCode.WORKED_AHEAD


def test_a_change_counts_where_the_call_whose_inputs_it_wrote_had_yet_to_begin() -> None:
    memory, counted = Memory(), set()
    side = honest(memory)
    memory.before_a_change = side.run_until_one_is_left
    for rng_seed in range(40):
        blocks = blocks_of(memory, side, rng_seed=rng_seed)
        blocks.are_last = True
        plan = blocks.plan()
        blocks.run(plan)
        is_of_last = memory.changed[-1] == plan.sets[-1]
        assert bool(blocks.changed) == is_of_last
        counted.add(is_of_last)
    assert counted == {False, True}


def test_the_call_whose_inputs_change_comes_after_those_that_usually_begin_meanwhile() -> None:
    memory, begun, delay = Memory(), list[int](), 3
    side = honest(memory)
    memory.before_a_change = lambda: begun.append(0 if side.is_held else side.begun)
    for rng_seed in range(40):
        blocks = blocks_of(memory, side, rng_seed=rng_seed)
        blocks.delays = [0, delay, CALLS]
        plan = blocks.plan()
        blocks.run(plan)
        assert plan.sets.index(memory.changed[-1]) >= min(begun[-1] + delay + 1, plan.calls - 1) or not begun[-1]
    assert len(set(begun)) > 2


def test_each_part_of_a_block_has_its_change() -> None:
    memory = Memory()
    for rng_seed in range(20):
        blocks = blocks_of(memory, honest(memory), rng_seed=rng_seed)
        run_all(blocks)
        assert (blocks.changed, blocks.tries) == (EVERY_WAY, len(EVERY_WAY))


def test_the_call_after_a_change_and_the_one_whose_inputs_changed_are_graded_wherever_they_lie() -> None:
    memory, begun = Memory(), []
    side = honest(memory)
    memory.before_a_change = lambda: begun.append(side.begun)
    places = set()
    for rng_seed in range(40):
        blocks = blocks_of(memory, side, calls=CALLS, rng_seed=rng_seed)
        plan = blocks.plan()
        blocks.run(plan)
        assert {plan.sets[begun[-1]], memory.changed[-1]} <= set(memory.graded)
        places.add(begun[-1])
        memory.graded.clear()
    assert places == set(range(2, CALLS))  # the first call is over, and the last one may be the first to see it


def test_any_call_that_began_after_the_change_may_be_graded() -> None:
    memory = Memory()
    from_the_end = set()
    for rng_seed in range(40):
        blocks = blocks_of(memory, honest(memory), rng_seed=rng_seed)
        plan = blocks.plan()
        blocks.run(plan)
        from_the_end |= {plan.calls - plan.sets.index(index) for index in memory.graded}
        memory.graded.clear()
    assert {1} < from_the_end  # the last one, and others


def kept_but_in(memory: Memory, is_right: Callable[[int, int], bool]) -> Looping:
    """Return a side that computes from the parameter as it was when the block began, but for calls that are to be right."""
    kept, block = [0.0], [()]

    def begin(sets: Sequence[int]) -> None:
        kept[0], block[0] = memory.parameter, tuple(sets)

    def call(index: int) -> None:
        if is_right(block[0].index(index), len(block[0])):
            kept[0] = memory.parameter
        memory.outputs[index] = 2 * memory.inputs[index] + kept[0]

    return Looping(memory, call, begin)


KEPT = {
    "until the last call": lambda call, calls: call == calls - 1,
    "but for the last third": lambda call, calls: 3 * call >= 2 * calls,
    "in the second half": lambda call, calls: 2 * call < calls,
    "in the middle third": lambda call, calls: not calls <= 3 * call < 2 * calls + 3,
}


@pytest.mark.first_case
@pytest.mark.parametrize("is_right", KEPT.values(), ids=KEPT)
def test_parameters_kept_for_a_part_of_a_block_are_found(is_right: Callable[[int, int], bool]) -> None:
    memory = Memory()
    for rng_seed in range(20):
        blocks = blocks_of(memory, kept_but_in(memory, is_right), calls=18, rng_seed=rng_seed)
        with pytest.raises(Distrusted, match="keeps nothing from call to call"):
            run_all(blocks)


def test_changes_that_come_when_only_the_last_call_is_left_are_not_all_that_is_seen() -> None:
    """A busy machine gives the judge a core late: whoever is right in the last call is right in all of these blocks."""
    memory, late = Memory(), 4 * BLOCK_PARTS
    side = kept_but_in(memory, KEPT["until the last call"])

    def be_late() -> None:
        if memory.parameter <= late:
            side.run_until_one_is_left()

    memory.before_a_change = be_late
    blocks = blocks_of(memory, side)
    with pytest.raises(Distrusted, match="keeps nothing from call to call"):
        run_all(blocks)
    assert blocks.tries > BLOCK_PARTS


def test_slow_blocks_are_left_out() -> None:
    memory = Memory()
    blocks = blocks_of(memory, honest(memory), calls=2)
    assert blocks.has_room and blocks.is_open(1)
    blocks.timed.usual_call_s = 1.1
    assert not blocks.has_room and not blocks.is_open(1)


@pytest.mark.parametrize(
    ("block_s", "tries"), [(CERTAIN_BLOCK_S, TRIES), (1.1 * CERTAIN_BLOCK_S, LONG_BLOCK_TRIES)], ids=["short", "long"]
)
def test_blocks_in_which_the_judge_surely_gets_a_core_have_fewer_tries(block_s: float, tries: int) -> None:
    memory = Memory()
    blocks = blocks_of(memory, honest(memory))
    blocks.timed.usual_call_s = block_s / CALLS
    blocks.tries = tries * blocks.n_wanted - 1
    assert blocks.is_open(blocks.n_wanted)
    blocks.tries += 1
    assert not blocks.is_open(blocks.n_wanted)


def test_the_judge_may_use_every_core_while_a_block_runs() -> None:
    """Bound to the candidate's core it would write when the block is over."""
    memory, one = Memory(), {measurement_cores()[0]}
    seen = list[set[int]]()
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            os.sched_setaffinity(process.pid, one)
            memory.pid = process.pid
            memory.before_a_change = lambda: seen.append(os.sched_getaffinity(process.pid))
            run_all(blocks_of(memory, honest(memory)))
            assert seen and all(cores == set(measurement_cores()) for cores in seen)
            assert os.sched_getaffinity(process.pid) == one
        finally:
            process.kill()


@pytest.mark.parametrize("calls", [2, 3, CALLS])
def test_the_number_of_calls_tells_nothing(calls: int) -> None:
    memory = Memory()
    blocks = blocks_of(memory, honest(memory), calls=calls)
    usual = {max(2, blocks.planner.count()) for _ in range(500)}
    assert {blocks.plan().calls for _ in range(500)} == usual


@pytest.mark.parametrize("calls", [2, 3])
def test_parameters_kept_for_two_calls_are_found(calls: int) -> None:
    memory, kept = Memory(), [0.0]

    def call(index: int) -> None:
        memory.outputs[index] = 2 * memory.inputs[index] + kept[0]

    side = Looping(memory, call, lambda _: kept.__setitem__(0, memory.parameter))
    with pytest.raises(Distrusted, match="keeps nothing from call to call"):
        run_all(blocks_of(memory, side, calls=calls))


def test_a_gpu_has_no_such_blocks() -> None:
    memory = Memory()
    memory.device_kind = DeviceKind.CUDA
    assert not blocks_of(memory, honest(memory)).is_open(BLOCK_PARTS)


def test_no_thread_begins_or_ends_with_a_block_whose_contents_change() -> None:
    memory = Memory()
    counts: list[int] = []
    before = set(threading.enumerate())

    def call(index: int) -> None:
        counts.append(len(set(threading.enumerate()) - before))
        memory.outputs[index] = 2 * memory.inputs[index] + memory.parameter

    blocks = blocks_of(memory, Looping(memory, call))
    call(0)  # as a block of the other kind does
    run_all(blocks)
    assert len(counts) > CALLS and set(counts) == {1}
