"""Blocks whose contents change while they run, with a side that is a loop in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from tests.tools.measure.answering import Answering

from ridgeline.tools.judge.messages import Check, Supersede
from ridgeline.tools.judge.replies import Done
from ridgeline.tools.measure.block_plan import BlockPlanner
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.timed_side import TimedSide
from ridgeline.tools.measure.unsettled import UNSETTLED, UNSETTLED_TRIES, Unsettled
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode
from ridgeline.tools.runner.wire import LoopTime

N_SETS, CALLS, CALL_S = 24, 10, 2e-3


class Memory(Answering):
    """A judge whose sets hold a number each, to be doubled, and whose parameter is added to that."""

    def __init__(self) -> None:
        super().__init__(N_SETS)
        self.inputs = [float(i + 1) for i in range(N_SETS)]
        self.outputs = [0.0] * N_SETS
        self.parameter = 1.0
        self.delay_s = 0.0

    def supersede(self, request: Supersede) -> Done:
        if not request.draws_only:
            time.sleep(self.delay_s)
            self.inputs[request.set_index] = self.inputs[request.like]
            self.parameter += 1
        return Done()

    def check(self, request: Check) -> Trial:
        expected = 2 * self.inputs[request.set_index] + self.parameter
        error = abs(self.outputs[request.set_index] - expected)
        return Trial(name="timed", rel_error=error, gate=0.0, passed=error == 0)


class Looping:
    """A side that makes every call in this thread; `prepare` is called once a block."""

    pid = 0

    def __init__(
        self, memory: Memory, call: Callable[[int], None], prepare: Callable[[Sequence[int]], None] = lambda _: None
    ) -> None:
        self.memory, self.call, self.prepare = memory, call, prepare
        self.to_come = 0

    def loop(self, sets: Sequence[int]) -> LoopTime:
        self.prepare(sets)
        for done, index in enumerate(sets):
            self.to_come = len(sets) - done - 1
            self.call(index)
            time.sleep(CALL_S)
        return LoopTime(parent_s=CALL_S * len(sets), own_s=CALL_S * len(sets))

    def calls_to_come(self) -> int:
        return self.to_come

    def stop(self) -> None: ...

    def cont(self) -> None: ...


def blocks_of(memory: Memory, side: Looping, *, calls: int = CALLS) -> Unsettled:
    timed = TimedSide(side=side, judge=memory, is_tracked=True)  # type: ignore[arg-type]
    timed.usual_call_s = CALL_S
    return Unsettled(timed=timed, planner=BlockPlanner(n_sets=N_SETS, most_calls=calls))


def run_all(blocks: Unsettled) -> None:
    while blocks.is_open(UNSETTLED):
        blocks.look(blocks.plan())


def honest(memory: Memory) -> Looping:
    def call(index: int) -> None:
        memory.outputs[index] = 2 * memory.inputs[index] + memory.parameter

    return Looping(memory, call)


def test_calls_on_what_lies_there_pass() -> None:
    memory = Memory()
    blocks = blocks_of(memory, honest(memory))
    run_all(blocks)
    assert (blocks.seen, memory.parameter) == (UNSETTLED, 1 + blocks.tries)


def test_parameters_kept_for_a_block_are_found() -> None:
    memory, kept = Memory(), [0.0]

    def call(index: int) -> None:
        memory.outputs[index] = 2 * memory.inputs[index] + kept[0]

    with pytest.raises(Distrusted, match="keeps nothing from call to call") as fault:
        run_all(blocks_of(memory, Looping(memory, call, lambda _: kept.__setitem__(0, memory.parameter))))
    assert fault.value.finding.code is ReasonCode.WORKED_AHEAD


def test_calls_worked_off_in_the_first_one_are_found() -> None:
    memory = Memory()

    def work_off(sets: Sequence[int]) -> None:
        for index in sets:
            memory.outputs[index] = 2 * memory.inputs[index] + memory.parameter

    with pytest.raises(Distrusted):
        run_all(blocks_of(memory, Looping(memory, lambda _: None, work_off)))


def test_a_change_that_comes_after_the_last_call_began_tells_nothing() -> None:
    memory = Memory()
    memory.delay_s = 3 * CALLS * CALL_S
    blocks = blocks_of(memory, honest(memory))
    run_all(blocks)
    assert (blocks.seen, blocks.tries) == (0, UNSETTLED * UNSETTLED_TRIES)


def test_tickets_taken_all_at_once_are_found() -> None:
    memory = Memory()
    side = honest(memory)

    def take_all(sets: Sequence[int]) -> LoopTime:
        side.to_come = len(sets)
        time.sleep(2 * CALL_S)
        side.to_come = 0
        for index in sets:
            side.call(index)
            time.sleep(CALL_S)
        return LoopTime(parent_s=CALL_S * len(sets), own_s=CALL_S * len(sets))

    side.loop = take_all  # type: ignore[method-assign]
    with pytest.raises(Distrusted, match="at once") as fault:
        run_all(blocks_of(memory, side))
    assert fault.value.finding.code is ReasonCode.WORKED_AHEAD


def test_short_blocks_are_lengthened_and_slow_ones_left_out() -> None:
    memory = Memory()
    blocks = blocks_of(memory, honest(memory), calls=2)
    assert blocks.calls == 4
    blocks.timed.usual_call_s = 1.0
    assert blocks.calls == 0


def test_a_gpu_has_no_such_blocks() -> None:
    memory = Memory()
    memory.device_kind = DeviceKind.CUDA
    assert not blocks_of(memory, honest(memory)).is_open(UNSETTLED)
