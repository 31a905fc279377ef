"""Blocks whose contents change while they run, with a side that is a loop in this process.

A call lasts for two looks at its ticket, between which contents change, and a late change waits for the block's end: no
order of the two threads is left to the machine's load.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from threading import Condition

import pytest
from tests.tools.measure.answering import Answering

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.messages import Check, Supersede
from ridgeline.tools.judge.replies import Done
from ridgeline.tools.measure.block_plan import BlockPlan, BlockPlanner
from ridgeline.tools.measure.changing_blocks import BLOCK_PARTS, PATIENCE, TRIES, ChangingBlocks
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.timed_side import TimedCandidate
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode
from ridgeline.tools.runner.loop_time import LoopTime

N_SETS, CALLS, CALL_S = 24, 10, 2e-3
EVERY_WAY = {(part, is_held) for part in range(BLOCK_PARTS) for is_held in (False, True)}
LIMIT_S = 60.0
"""Of a wait of one thread for another."""


class Memory(Answering):
    """A judge whose sets hold a number each, to be doubled, and whose parameter is added to that."""

    def __init__(self) -> None:
        super().__init__(N_SETS)
        self.inputs = [float(i + 1) for i in range(N_SETS)]
        self.outputs = [0.0] * N_SETS
        self.parameter = 1.0
        self.before_a_change: Callable[[], object] = lambda: None
        self.graded: list[int] = []

    def supersede(self, request: Supersede) -> Done:
        if not request.draws_only:
            self.before_a_change()
            self.inputs[request.set_index] = self.inputs[request.like]
            self.parameter += 1
        return Done()

    def check(self, request: Check) -> Trial:
        self.graded.append(request.set_index)
        expected = 2 * self.inputs[request.set_index] + self.parameter
        error = abs(self.outputs[request.set_index] - expected)
        return Trial(name="timed", rel_error=error, gate=0.0, passed=error == 0)


class Looping:
    """A side that makes every call in this thread, after two looks at its ticket; `prepare` is called once a block."""

    pid = 0

    def __init__(
        self, memory: Memory, call: Callable[[int], None], prepare: Callable[[Sequence[int]], None] = lambda _: None
    ) -> None:
        self.memory, self.call, self.prepare = memory, call, prepare
        self.begun = self.looks = self.calls = self.first_to_wait = 0
        self.waits, self.is_held = True, False
        self.turn = Condition()

    def loop(self, sets: Sequence[int]) -> LoopTime:
        self.waits, self.calls, self.first_to_wait = len(sets) > 1, len(sets), 0  # no one looks at a call alone
        self.prepare(sets)
        for done, index in enumerate(sets):
            self.take(done + 1)
            self.call(index)
        return self.end(sets)

    def take(self, tickets: int) -> None:
        """Take tickets until there are so many, and wait until that was seen twice."""
        with self.turn:
            self.begun, self.looks = tickets, 0
            self.turn.notify_all()
            assert self.turn.wait_for(
                lambda: self.looks >= 2 or not self.waits or tickets < self.first_to_wait, LIMIT_S
            )

    def end(self, sets: Sequence[int]) -> LoopTime:
        with self.turn:
            self.begun = 0
            self.turn.notify_all()
        return LoopTime(parent_s=CALL_S * len(sets), own_s=CALL_S * len(sets))

    def calls_begun(self) -> int:
        with self.turn:
            self.looks += 1
            self.turn.notify_all()
            return self.begun

    def outlast(self) -> None:
        """Wait for the end of the block, whose calls wait for nobody."""
        with self.turn:
            self.waits = False
            self.turn.notify_all()
            assert self.turn.wait_for(lambda: self.begun == 0, LIMIT_S)

    def run_until_one_is_left(self) -> None:
        """Wait until there is one ticket left; the calls before wait for nobody."""
        with self.turn:
            self.first_to_wait = self.calls - 1
            self.turn.notify_all()
            assert self.turn.wait_for(lambda: self.begun >= self.first_to_wait, LIMIT_S)

    def glimpse(self, set_index: int, _share: float) -> bytes:
        return str(self.memory.outputs[set_index]).encode()

    def stop(self) -> None: ...

    def hold(self) -> None:
        self.is_held = True

    def cont(self) -> None:
        self.is_held = False

    def rest(self) -> None: ...


def blocks_of(memory: Memory, side: Looping, *, calls: int = CALLS, rng_seed: int = 0) -> ChangingBlocks:
    timed = TimedCandidate(side=side, judge=memory)  # type: ignore[arg-type]
    timed.usual_call_s = CALL_S
    rng = random.Random(rng_seed)
    return ChangingBlocks(timed=timed, planner=BlockPlanner(n_sets=N_SETS, most_calls=calls, rng=rng), rng=rng)


def run_all(blocks: ChangingBlocks) -> list[BlockPlan]:
    """Run blocks until there is none to come, and return them."""
    plans = []
    while blocks.is_open(blocks.n_wanted):
        blocks.timed.judge.outputs[:] = [-1.0] * N_SETS  # type: ignore[attr-defined]  # as a renewal poisons them
        plans.append(blocks.plan())
        blocks.run(plans[-1])
    return plans


def honest(memory: Memory) -> Looping:
    def call(index: int) -> None:
        memory.outputs[index] = 2 * memory.inputs[index] + memory.parameter

    return Looping(memory, call)


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


def test_each_part_of_a_block_has_its_change() -> None:
    memory = Memory()
    for rng_seed in range(20):
        blocks = blocks_of(memory, honest(memory), rng_seed=rng_seed)
        run_all(blocks)
        assert (blocks.changed, blocks.tries) == (EVERY_WAY, len(EVERY_WAY))


def test_the_call_after_a_change_is_graded_wherever_it_lies() -> None:
    memory, begun = Memory(), []
    side = honest(memory)
    memory.before_a_change = lambda: begun.append(side.begun)
    places = set()
    for rng_seed in range(40):
        blocks = blocks_of(memory, side, calls=CALLS, rng_seed=rng_seed)
        plan = blocks.plan()
        blocks.run(plan)
        assert plan.sets[begun[-1]] in memory.graded
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
