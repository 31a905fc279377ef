"""The pipe of a block's tickets: what the parent sees of it, and what a runner may do to it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ridgeline.tools.records.tickets import TICKET_BYTES
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.ticket_pipe import TicketPipe


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    drawn, tickets = os.pipe2(os.O_NONBLOCK)
    yield drawn, tickets
    os.close(drawn)
    os.close(tickets)


def test_a_call_has_begun_when_its_ticket_was_taken(ends: tuple[int, int]) -> None:
    drawn, tickets = ends
    pipe = TicketPipe(tickets)
    assert pipe.calls_begun() == 0
    pipe.write([4, 0, 2])
    assert pipe.calls_begun() == 0
    with pytest.raises(RunnerFailure, match="before the last call"):
        pipe.expect_empty()
    os.read(drawn, 4 * TICKET_BYTES)
    pipe.write([4, 0, 2])
    os.read(drawn, 2 * TICKET_BYTES)
    assert pipe.calls_begun() == 2
    os.read(drawn, 2 * TICKET_BYTES)
    assert pipe.calls_begun() == 3
    pipe.expect_empty()
    assert pipe.calls_begun() == 0  # the next block's calls are not those of the last one


def test_tickets_that_a_candidate_puts_back_are_calls_to_come(ends: tuple[int, int]) -> None:
    drawn, tickets = ends
    pipe = TicketPipe(tickets)
    pipe.write([4, 0, 2])
    os.read(drawn, 4 * TICKET_BYTES)
    os.write(tickets, bytes(9 * TICKET_BYTES))
    assert pipe.calls_begun() == 0


def test_a_candidate_that_fills_the_pipe_has_broken_the_protocol(ends: tuple[int, int]) -> None:
    _, tickets = ends
    os.write(tickets, bytes(1 << 16))  # as a program of the same user can, through /proc/self/fd
    with pytest.raises(RunnerFailure) as raised:
        TicketPipe(tickets).write([0, 1])
    assert raised.value.finding.code is ReasonCode.PROTOCOL_VIOLATED
