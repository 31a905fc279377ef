"""How the tickets of a running block are taken: one when its call is made, by a program that leaves its loop as it is.

The parent looks at the pipe as often as it can. Between two looks an honest loop takes no more tickets than calls fit in
there, however busy the machine is: a look that comes late leaves room for more.
"""

from __future__ import annotations

import time
from collections.abc import Callable

AT_ONCE = 4
"""Tickets beyond those whose calls fit between two looks."""
SHORTEST_CALL = 0.25
"""Time of a block's shortest call, as part of the fastest block's mean."""
LEAST_TICKET_S = 2e-7
"""Time that taking a ticket takes alone: a system call."""
_FEW_LOOKS = 3
_LOOK_SPACING_S = 1e-4


class TicketWatch:
    """Looks at one block. One thread looks, another says when the block has ended."""

    def __init__(self, calls_to_come: Callable[[], int | None], *, call_s: float) -> None:
        """Watch a block that begins now, whose calls usually take `call_s` seconds or more."""
        self._calls_to_come = calls_to_come
        self._least_s = max(SHORTEST_CALL * call_s, LEAST_TICKET_S)
        self._began = self._looked = time.perf_counter()
        self._ended: float | None = None
        self._left = 0
        self._looks: list[float] = []  # some of them
        self._empty_s: float | None = None  # when nothing was left first, of the looks since something was
        self.found_many_taken = False

    @property
    def has_ended(self) -> bool:
        """Return whether the block has ended."""
        return self._ended is not None

    @property
    def found_none_left_early(self) -> bool:
        """Return whether no call was to come for more than half of the block; False where it was hardly looked at."""
        if self._ended is None:
            return False
        half = (self._began + self._ended) / 2
        was_watched = sum(look < half for look in self._looks) >= _FEW_LOOKS
        return was_watched and self._empty_s is not None and self._empty_s < half

    def look(self) -> int:
        """Return how many calls are to come, 0 where that cannot be told."""
        before = time.perf_counter()
        left = self._calls_to_come()
        after = time.perf_counter()
        if left is None:
            return 0
        taken, fit = self._left - left, (after - self._looked) / self._least_s
        self.found_many_taken |= taken > AT_ONCE + fit
        self._left, self._looked = left, before
        self._empty_s = None if left else (self._empty_s or before)
        if not self._looks or before - self._looks[-1] > _LOOK_SPACING_S:
            self._looks.append(before)
        return left

    def end(self) -> None:
        """Note that the block has ended."""
        self._ended = time.perf_counter()
