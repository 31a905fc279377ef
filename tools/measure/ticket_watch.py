"""How the tickets of a running block are taken: one when its call is made, by a program that leaves its loop as it is.

The parent looks at the pipe as often as it can. Between two looks an honest loop takes no more tickets than calls fit in
there, however busy the machine is: a look that comes late leaves room for more.
"""

from __future__ import annotations

import time
from collections.abc import Callable

AT_ONCE = 4
"""Tickets beyond those whose calls fit between two looks."""
SHORTEST_CALL = 0.02
"""Time of a block's shortest call, as part of the fastest block's mean."""
LEAST_TICKET_S = 2e-7
"""Time that taking a ticket takes alone: a system call."""


class TicketWatch:
    """Looks at one block. One thread looks, another says when the block has ended."""

    def __init__(self, calls_to_come: Callable[[], int | None], *, call_s: float) -> None:
        """Watch a block that begins now, whose calls usually take `call_s` seconds or more."""
        self._calls_to_come = calls_to_come
        self._least_s = max(SHORTEST_CALL * call_s, LEAST_TICKET_S)
        self._looked_s = time.perf_counter()
        self._left = 0
        self.has_ended = False
        self.found_many_taken = False

    def look(self) -> int:
        """Return how many calls are to come, 0 where that cannot be told."""
        before_s = time.perf_counter()
        left = self._calls_to_come()
        if left is None:
            return 0
        fit = (time.perf_counter() - self._looked_s) / self._least_s
        self.found_many_taken |= self._left - left > AT_ONCE + fit
        self._left, self._looked_s = left, before_s
        return left
