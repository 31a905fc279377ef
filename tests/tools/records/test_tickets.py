"""Tickets: what is written is drawn, and what can be seen of one that was not taken tells nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ridgeline.tools.records.tickets import END, TICKET_BYTES, TicketsLost, draw_tickets, encode_tickets

SETS = [0, 254, 255, 256, 509, 16_000, 65_535, 3]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    os.close(ends[0])


def test_tickets_are_drawn_as_they_were_written(pipe: tuple[int, int]) -> None:
    drawn, written = pipe
    os.write(written, encode_tickets(SETS) + encode_tickets([]))
    assert list(draw_tickets(drawn)) == SETS
    assert list(draw_tickets(drawn)) == []
    os.close(written)
    with pytest.raises(TicketsLost):
        next(draw_tickets(drawn))


def test_without_its_last_byte_a_ticket_tells_no_set_of_its_group_from_another_or_from_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: b"\x5a" * count)
    seen = set()
    for number in range(END, 2 * END):
        ticket, end = encode_tickets([number])[:TICKET_BYTES], encode_tickets([number])[TICKET_BYTES:]
        seen |= {ticket[:-1], end[:-1]}
    assert seen == {b"\x5a\x01\x00"}


def test_each_ticket_is_covered_anew() -> None:
    assert len({encode_tickets([7] * 8)[i : i + TICKET_BYTES] for i in range(0, 8 * TICKET_BYTES, TICKET_BYTES)}) > 1
