"""The calls of a block: their number, sets and order, none of which a candidate can foresee.

The contents of all sets lie ready when a block begins, and a candidate could work ahead for calls that it knows of. So
each call's set is secret until the call, the number of calls is uneven, and a third of the sets is never asked for: who
works for all of them does more than was asked, and writes outputs that nobody asked for. See singles.py for
work done ahead in private.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

LEAST_CALLS = 2
SLOW_CALL_S = 0.5
"""A side whose call takes this long has blocks of one call: what a request costs is nothing beside it."""
LONGEST_BLOCK = 8.0
"""The slower side's block lasts at most this many times as long as one should."""
_ASKED_SHARE = 2 / 3


class BlockKind(StrEnum):
    """The purpose of a block; a candidate cannot foresee which kind comes next."""

    COUNTED = "counted"  # its time counts
    SINGLE = "single"  # of one call: shows work that was done ahead, see singles.py
    BESIDE = "beside"  # a long one, in turns with those of one call when they are late
    EXTRA = "extra"  # of kinds of contents that no other block had: see coverage.py
    CHANGING = "changing"  # its contents change while it runs: see changing_blocks.py


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """One block: what it is for, the order in which its contents are written, and how many calls there are."""

    order: tuple[int, ...]  # every set once; the first ones have left the cache when the block begins
    calls: int
    kind: BlockKind = BlockKind.COUNTED

    @property
    def sets(self) -> tuple[int, ...]:
        """Return the set of each call."""
        return self.order[: self.calls]

    @property
    def unasked(self) -> tuple[int, ...]:
        """Return the sets that no call has."""
        return self.order[self.calls :]


@dataclass(slots=True, kw_only=True)
class BlockPlanner:
    """Draws blocks for both sides of a measurement, of more calls once these are seen to be shorter."""

    n_sets: int
    most_calls: int
    rng: random.Random = field(default_factory=random.SystemRandom)

    def count(self) -> int:
        """Return the number of calls of two blocks that are compared: what a stop costs weighs alike on both."""
        return self.rng.randint(max(1, self.most_calls - max(1, self.most_calls // 3)), self.most_calls)

    def draw(self, calls: int, kind: BlockKind = BlockKind.COUNTED) -> BlockPlan:
        """Return a block of so many calls."""
        return BlockPlan(order=tuple(self.rng.sample(range(self.n_sets), self.n_sets)), calls=calls, kind=kind)


def most_calls(calls_s: Sequence[float], n_sets: int, *, block_s: float) -> int:
    """Return the most calls of a block: enough to last `block_s`, each on a set of its own, at least two, of a slow side one.

    `calls_s` are the seconds of a call of each side. The faster side's block lasts `block_s`, as long as the slower one's
    lasts no more than LONGEST_BLOCK times that. Two thirds of the sets are used at most; three sets always exist.
    """
    fastest, slowest = min(calls_s), max(calls_s)
    wanted = min(math.ceil(block_s / fastest), int(LONGEST_BLOCK * block_s / slowest))
    least = LEAST_CALLS if slowest < SLOW_CALL_S else 1
    return max(least, min(wanted, most_calls_on(n_sets)))


def most_calls_on(n_sets: int) -> int:
    """Return how many of so many sets a block uses at most: two thirds."""
    return int(_ASKED_SHARE * n_sets)
