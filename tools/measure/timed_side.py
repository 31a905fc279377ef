"""One side of an alternating measurement: how many calls its blocks have, which sets they use, what they took.

A block is one loop, one request to the side, timed by the parent until the side is at rest again. Every call of a block
meets contents that are new since just before the block, and every call counts: whatever a candidate computes ahead, or
keeps, is computed while the clock runs and is of no use to another block. A candidate that misleads the warm-up changes
how long its blocks are, and by that only how much the request's own cost weighs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from ridgeline.tools.judge.set_count import MIN_SETS
from ridgeline.tools.measure.sides import Arena, Side
from ridgeline.tools.measure.statistics import percentile
from ridgeline.tools.runner.wire import LoopTime

LEAST_CALLS = MIN_SETS


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """How long a side runs before it is timed: EVALUATION asks for at least 10 calls and 200 ms."""

    calls: int = 10
    seconds: float = 0.2
    limit_s: float = 3.0  # a very slow side stops here, after three calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The shape of a side's blocks: `calls`, each on a set of its own."""

    calls: int


def make_plan(per_call_s: float, n_sets: int, *, block_s: float) -> Plan:
    """Return the blocks' shape for a kernel of this speed: calls that last `block_s`, as far as the sets go round once.

    Three at least: as many sets as there always are.
    """
    return Plan(calls=max(LEAST_CALLS, min(math.ceil(block_s / per_call_s), n_sets)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What one block took."""

    calls: int
    took: LoopTime
    page_faults: int
    clocks: dict[str, float] = field(default_factory=dict)  # of a GPU, right after the block

    @property
    def own_s(self) -> float:
        """Return the seconds per call by the side's own clock."""
        return self.took.own_s / self.calls

    @property
    def parent_s(self) -> float:
        """Return the seconds per call by the parent's clock, the request's own cost included."""
        return self.took.parent_s / self.calls


@dataclass(slots=True, kw_only=True)
class Lane:
    """One side, its plan and its blocks so far."""

    side: Side
    arena: Arena
    is_tracked: bool  # a candidate; the reference is trusted
    request_s: float = 0.0  # what a request costs, however little it asks for: see request_cost.py
    plan: Plan = Plan(calls=LEAST_CALLS)
    blocks: list[Block] = field(default_factory=list)
    observe: Callable[[], dict[str, float]] = dict  # a GPU's clocks now; nothing on a CPU

    def warm_up(self, warm_up: WarmUp, *, block_s: float) -> None:
        """Run the side until it is warm and has touched every set, then settle its plan."""
        n_sets = self.arena.n_sets
        spent = last = self.side.loop(0, 1).parent_s
        done, chunk = 1, 1
        while not self._is_warm(warm_up, done, spent, n_sets):
            chunk = max(1, min(n_sets, math.ceil(0.05 / max(last / chunk, 1e-7))))
            last = self.side.loop(done % n_sets, chunk).parent_s
            done += chunk
            spent += last
        self.plan = make_plan(max(last / chunk, 1e-7), n_sets, block_s=block_s)

    @staticmethod
    def _is_warm(warm_up: WarmUp, done: int, spent: float, n_sets: int) -> bool:
        if spent >= warm_up.limit_s and done >= 3:
            return True
        return done >= max(warm_up.calls, n_sets) and spent >= warm_up.seconds

    def renew(self) -> float:
        """Give every set new contents, poison every output, and return how many times as long as usual a GPU took for it.

        All of them, before every block: sets that kept their contents for a later block could be worked off in one slow
        block, which a median over blocks forgives. Before the reference's blocks too, which needs no new contents:
        writing a gigabyte leaves the caches full of lines that have yet to reach memory, and both sides shall meet them
        alike.
        """
        return self.arena.renew()

    def run_block(self, choose: Callable[[tuple[int, ...]], tuple[int, ...]]) -> tuple[int, ...]:
        """Time one block and return the sets whose outputs to check: those that `choose` picks among the sets used.

        It begins with set 0, the coldest: a renewal writes it first. The sets are given in the order of their use, so the
        last one is the last call's.
        """
        calls = self.plan.calls
        faults = self.side.page_faults()
        took = self.side.loop(0, calls)
        faults = self.side.page_faults() - faults
        self.blocks.append(Block(calls=calls, took=took, page_faults=faults, clocks=self.observe()))
        return choose(tuple(range(calls)))  # chosen afterwards: nothing that a candidate could read tells which

    def latency_s(self) -> float:
        """Return the 90th percentile of what a request takes beyond the side's own clock: waking up, waiting for a core."""
        return percentile([b.took.parent_s - b.took.own_s for b in self.blocks], 90)

    def per_call_s(self) -> list[float]:
        """Return every block's seconds per call.

        A candidate's are the parent's, less what a block's request usually costs: nothing that it could have a say in
        is taken off. Where that leaves less than the candidate's own clock says, the request was cheaper than usual, and
        its own clock counts: it can only make it slower. The reference is trusted and its requests cost more, so its own
        clock counts: what is wrong is wrong in its favour.
        """
        if not self.is_tracked:
            return [b.own_s for b in self.blocks]
        return [max(b.parent_s - self.request_s / b.calls, b.own_s) for b in self.blocks]
