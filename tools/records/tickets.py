"""The tickets of a block: the sets of its calls, which a timed process learns one by one.

Whoever times a block writes its tickets into a pipe beforehand. The loop takes one before each call, so that a candidate
that is called knows neither which set comes next nor whether there is a next call.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

TICKET_BYTES = 4
END = (1 << 32) - 1
"""The ticket after the last call's."""


class TicketsLost(Exception):
    """The pipe was closed before the block's end."""


def encode_tickets(sets: Sequence[int]) -> bytes:
    """Return the tickets of calls on these sets, in order, and the end: little-endian numbers of four bytes."""
    return b"".join(number.to_bytes(TICKET_BYTES, "little") for number in (*sets, END))


def draw_tickets(pipe: int) -> Iterator[int]:
    """Take the tickets of one block from a pipe, each when it is asked for.

    Raises:
        TicketsLost: the pipe was closed.
    """
    read, number = os.read, int.from_bytes
    while ticket := read(pipe, TICKET_BYTES):
        index = number(ticket, "little")
        if index == END:
            return
        yield index
    raise TicketsLost
