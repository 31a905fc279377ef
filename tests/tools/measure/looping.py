"""A side that loops over memory whose contents change meanwhile, and its blocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from threading import Condition

from tests.tools.measure.answering import Answering

from ridgeline.tools.judge.messages import Check, DrawNext, Supersede
from ridgeline.tools.judge.replies import Done
from ridgeline.tools.measure.block_plan import BlockPlan, BlockPlanner
from ridgeline.tools.measure.changing_blocks import ChangingBlocks
from ridgeline.tools.measure.timed_side import TimedCandidate
from ridgeline.tools.records.results import Trial
from ridgeline.tools.runner.loop_time import LoopTime

N_SETS, CALLS, CALL_S = 24, 10, 2e-3


LIMIT_S = 60.0  # of a wait of one thread for another


class Memory(Answering):
    """A judge whose sets hold a number each, to be doubled, and whose parameter is added to that."""

    def __init__(self) -> None:
        super().__init__(N_SETS)
        self.inputs = [float(i + 1) for i in range(N_SETS)]
        self.outputs = [0.0] * N_SETS
        self.parameter = 1.0
        self.before_a_change: Callable[[], object] = lambda: None
        self.graded: list[int] = []
        self.changed: list[int] = []

    def draw_next(self, _request: DrawNext) -> Done:
        return Done()

    def supersede(self, request: Supersede) -> Done:
        self.before_a_change()
        self.changed.append(request.set_index)
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
    blocks.are_last = True
    while blocks.is_open(blocks.n_wanted):
        blocks.timed.judge.outputs[:] = [-1.0] * N_SETS  # type: ignore[attr-defined]  # as a renewal poisons them
        plans.append(blocks.plan())
        blocks.run(plans[-1])
    return plans


def honest(memory: Memory) -> Looping:
    def call(index: int) -> None:
        memory.outputs[index] = 2 * memory.inputs[index] + memory.parameter

    return Looping(memory, call)
