"""One side of an alternating measurement: how many calls its blocks have, which sets they use, what they took.

A block is a loop of N calls and one of 2N, timed by the parent. Where the sets allow, every call of a candidate's block
finds contents that it has not seen since the last refill, so nothing it keeps between calls can help it; where a kernel
is too fast for that, the loops rotate over all sets again and again, and the first pass over fresh contents is compared
with the later ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from ridgeline.tools.arena import Arena, LoopTime, Side
from ridgeline.tools.statistics import percentile

OVERHEAD_LIMIT_S = 100e-6
"""The most that is subtracted from a loop for the request itself (measured: 20 to 60 us for a pipe, more when busy).

It is estimated from N and 2N calls, which a candidate could skew by dawdling in one of them; the limit bounds what that
gains to 1.5 x 100 us in a block, 1 % of the usual 12 ms.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """How long a side runs before it is timed: EVALUATION asks for at least 10 calls and 200 ms."""

    calls: int = 10
    seconds: float = 0.2
    limit_s: float = 3.0  # a very slow side stops here, after three calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The shape of a side's blocks."""

    calls: int  # N
    lead_in: int  # untimed calls after a side was resumed: its threads wake, its code comes back into the caches
    rotates: bool  # the same sets are used again and again within a block

    def sets_used(self, n_sets: int) -> int:
        """Return how many different sets a block touches."""
        return n_sets if self.rotates else self.lead_in + 3 * self.calls


def make_plan(per_call_s: float, n_sets: int, *, loop_s: float, shortest_loop_s: float) -> Plan:
    """Return the blocks' shape for a kernel of this speed.

    `loop_s` is what N calls should last, `shortest_loop_s` the least that the parent's clock times well enough; below
    it the sets are used more than once, for 2.5 `loop_s`.
    """
    lead_in = 3 if n_sets >= 12 else 0
    wanted = max(1, math.ceil(loop_s / per_call_s))
    available = (n_sets - lead_in) // 3
    calls = min(wanted, available)
    if calls >= 1 and (calls == wanted or calls * per_call_s >= shortest_loop_s):
        return Plan(calls=calls, lead_in=lead_in, rotates=False)
    return Plan(calls=max(3, n_sets, math.ceil(2.5 * loop_s / per_call_s)), lead_in=n_sets, rotates=True)


@dataclass(slots=True, kw_only=True)
class Rotation:
    """Which sets come next, for both sides together: a set just used by either is warm, so none is used twice in a row.

    `used` are the sets whose contents a candidate has seen since the last refill.
    """

    arena: Arena
    next_set: int = 0
    used: set[int] = field(default_factory=set)

    def take(self, count: int) -> int:
        """Return the first of the next `count` sets and move past them."""
        first = self.next_set
        self.next_set = (first + count) % self.arena.n_sets
        return first

    def refresh(self, count: int) -> None:
        """Make sure that the next `count` sets hold contents not seen before, and poison every output if they do not."""
        upcoming = {(self.next_set + i) % self.arena.n_sets for i in range(count)}
        if self.used & upcoming or not self.used:
            self.arena.refill()
            self.arena.poison()
            self.used.clear()
            self.next_set = 0
            upcoming = set(range(count))
        self.used |= upcoming


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What one block took; `short` is N calls, `long` 2N."""

    calls: int
    lead_in_calls: int
    lead_in: LoopTime | None
    short: LoopTime
    long: LoopTime
    page_faults: int

    @property
    def own_s(self) -> float:
        """Return the side's own seconds per call."""
        return (self.long.own_s + self.short.own_s) / (3 * self.calls)

    @property
    def fresh_s(self) -> float | None:
        """Return the parent's seconds per call of the first pass over fresh contents, or None when there was none."""
        return self.lead_in.parent_s / self.lead_in_calls if self.lead_in and self.lead_in_calls else None


@dataclass(slots=True, kw_only=True)
class Lane:
    """One side, its plan and its blocks so far."""

    side: Side
    rotation: Rotation
    is_tracked: bool  # a candidate: its contents must be fresh; the reference is trusted
    plan: Plan = Plan(calls=1, lead_in=0, rotates=False)
    blocks: list[Block] = field(default_factory=list)

    def warm_up(self, warm_up: WarmUp, *, loop_s: float, shortest_loop_s: float) -> None:
        """Run the side until it is warm and has touched every set, then settle its plan."""
        n_sets = self.rotation.arena.n_sets
        spent = last = self.side.loop(0, 1).parent_s
        done, chunk = 1, 1
        while not self._is_warm(warm_up, done, spent, n_sets):
            chunk = max(1, min(n_sets, math.ceil(0.05 / max(last / chunk, 1e-7))))
            last = self.side.loop(done % n_sets, chunk).parent_s
            done += chunk
            spent += last
        self.plan = make_plan(max(last / chunk, 1e-7), n_sets, loop_s=loop_s, shortest_loop_s=shortest_loop_s)

    @staticmethod
    def _is_warm(warm_up: WarmUp, done: int, spent: float, n_sets: int) -> bool:
        if spent >= warm_up.limit_s and done >= 3:
            return True
        return done >= max(warm_up.calls, n_sets) and spent >= warm_up.seconds

    def refresh(self) -> None:
        """Give a candidate contents that it has not seen; the judge must be running, the candidate paused."""
        if not self.is_tracked:
            return
        if self.plan.rotates:
            self.rotation.used.clear()
        self.rotation.refresh(self.plan.sets_used(self.rotation.arena.n_sets))

    def run_block(self, choose: Callable[[tuple[int, ...]], tuple[int, ...]]) -> tuple[int, ...]:
        """Time one block and return the sets whose outputs to check: those that `choose` picks among the sets used.

        The sets are given in the order of their last use, so the last one is the last call's.
        """
        plan, n_sets = self.plan, self.rotation.arena.n_sets
        first = self.rotation.take(plan.lead_in + 3 * plan.calls)
        sets = [(first + i) % n_sets for i in range(plan.lead_in + 3 * plan.calls)]
        chosen = choose(tuple(dict.fromkeys(reversed(sets)))[::-1])
        faults = self.side.page_faults()
        lead_in = self._loop(sets[: plan.lead_in], chosen)
        short = self._loop(sets[plan.lead_in : plan.lead_in + plan.calls], chosen)
        long = self._loop(sets[plan.lead_in + plan.calls :], chosen)
        if short is None or long is None:
            raise ValueError("a block needs at least one call")
        self.blocks.append(
            Block(
                calls=plan.calls,
                lead_in_calls=plan.lead_in,
                lead_in=lead_in,
                short=short,
                long=long,
                page_faults=self.side.page_faults() - faults,
            )
        )
        return chosen

    def _loop(self, sets: list[int], chosen: tuple[int, ...]) -> LoopTime | None:
        if not sets:
            return None
        return self.side.loop(sets[0], len(sets), tuple(sorted(set(chosen) & set(sets))))

    def overhead_s(self) -> float:
        """Return the parent's cost of one request: what N calls take beyond half of 2N, within OVERHEAD_LIMIT_S."""
        estimate = median(2 * b.short.parent_s - b.long.parent_s for b in self.blocks)
        return min(max(estimate, 0.0), OVERHEAD_LIMIT_S)

    def latency_s(self) -> float:
        """Return the 90th percentile of what a request takes beyond the side's own clock: waking up, waiting for a core."""
        beyond = [b.short.parent_s + b.long.parent_s - b.short.own_s - b.long.own_s for b in self.blocks]
        return percentile(beyond, 90) / 2

    def per_call_s(self) -> list[float]:
        """Return every block's seconds per call by the parent's clock, without the requests' own cost.

        The slope of N and 2N gives that cost, once for all blocks; using all 3N calls for the time makes a block three
        times less noisy than its own slope.
        """
        overhead = self.overhead_s()
        return [(b.short.parent_s + b.long.parent_s - 2 * overhead) / (3 * b.calls) for b in self.blocks]
