"""The tickets of a block: the sets of its calls, which a timed process learns one by one.

Whoever times a block writes its tickets into a pipe beforehand. The loop takes one before each call, so that a candidate
that is called knows neither which set comes next nor whether there is a next call.

A ticket tells at most the set's group until its last byte is read. Of the next one a read that fails midway shows all but
that byte, and takes nothing. So the last byte tells a set within its group of 255, or the end, and the first one, which is
drawn, covers it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from operator import xor

TICKET_BYTES = 4
END = 255
"""What the last byte of the end's ticket covers; sets are counted within groups of as many."""


class TicketsLost(Exception):
    """The pipe was closed before the block's end."""


def encode_tickets(sets: Sequence[int]) -> bytes:
    """Return the tickets of calls on these sets, in order, and the end: four bytes each.

    They are a random byte, the set's group in two bytes, little-endian, and the set's number within its group, or END, XOR
    the random byte. The end's group is a set's.
    """
    groups = [number // END for number in sets]
    groups.append(secrets.choice(groups) if groups else 0)
    covers = os.urandom(len(groups))
    tickets = bytearray(TICKET_BYTES * len(groups))
    tickets[0::4] = covers
    tickets[1::4] = bytes(group & 0xFF for group in groups)
    tickets[2::4] = bytes(group >> 8 for group in groups)
    tickets[3::4] = bytes(map(xor, covers, [*(number % END for number in sets), END]))
    return bytes(tickets)


def draw_tickets(pipe: int) -> Iterator[int]:
    """Take the tickets of one block from a pipe, each when it is asked for.

    Raises:
        TicketsLost: the pipe was closed.
    """
    read = os.read
    while ticket := read(pipe, TICKET_BYTES):
        cover, low, high, covered = ticket
        within = cover ^ covered
        if within == END:
            return
        yield (low | high << 8) * END + within
    raise TicketsLost
