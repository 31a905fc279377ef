"""A watch on the tickets of a running block: an honest loop takes each one right before its call.

Whoever has taken a ticket has returned from the call of the ticket before it, so that call's outputs lie there and stay
as they are. Somebody who took tickets ahead has outputs yet to make, which then change. That holds however late a look
comes and however long a process waits for a core: no look can blame an honest loop.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event

from ridgeline.tools.measure.sides import CandidateSide

LOOKS = 32
"""Looks at a block, in the mean, where it takes as long as usual. In between the parent sleeps: one that spins takes a core
from the candidate, which could tell by that what kind of block it is in."""


@dataclass(frozen=True, slots=True)
class _Glimpse:
    """Part of an output of a call that had returned."""

    set_index: int
    share: float  # where in the output it lies
    seen: bytes


@dataclass(slots=True, kw_only=True)
class TicketWatch:
    """Looks at one block. One thread looks, another says when the block has ended."""

    side: CandidateSide
    sets: Sequence[int]  # of the block's calls
    block_s: float  # how long it usually takes
    ended: Event = field(default_factory=Event)
    rng: random.Random = field(default_factory=random.SystemRandom)
    _glimpses: list[_Glimpse] = field(default_factory=list)

    def look(self) -> None:
        """Keep a part of what lies in outputs of calls that have returned."""
        begun = self.side.calls_begun()
        if begun > 1:
            before_last = begun - 2
            for call in {before_last, self.rng.randint(0, before_last)}:
                share = self.rng.random()
                seen = self.side.glimpse(self.sets[call], share)
                self._glimpses.append(_Glimpse(self.sets[call], share, seen))

    def pause(self) -> bool:
        """Sleep until it is time for another look, and return whether the block goes on."""
        return not self.ended.wait(self.rng.uniform(0.5, 1.5) * self.block_s / LOOKS)

    def set_changed_late(self) -> int | None:
        """Return a set whose output was made after its call should have returned, None for none; the block has ended."""
        for each in self._glimpses:
            if self.side.glimpse(each.set_index, each.share) != each.seen:
                return each.set_index
        return None
