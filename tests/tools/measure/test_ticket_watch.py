"""How tickets are taken, with a pipe whose fill is a list of numbers and a clock that a test moves."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ridgeline.tools.measure import ticket_watch
from ridgeline.tools.measure.ticket_watch import AT_ONCE, TicketWatch

CALL_S = 100e-6


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def watched(monkeypatch: pytest.MonkeyPatch, left: Iterable[int], *, every_s: float) -> TicketWatch:
    """Return the watch of a block that was looked at as often as there are numbers."""
    clock, numbers = Clock(), list(left)
    monkeypatch.setattr(ticket_watch, "time", clock)
    watch = TicketWatch(iter(numbers).__next__, call_s=CALL_S)
    for _ in numbers:
        clock.now += every_s
        watch.look()
    return watch


def test_an_honest_loop_takes_one_ticket_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not watched(monkeypatch, [0, *range(100, -1, -1)], every_s=CALL_S).found_many_taken


def test_a_look_that_comes_late_leaves_room_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not watched(monkeypatch, [100, 60, 20, 0], every_s=40 * CALL_S).found_many_taken


def test_many_tickets_taken_between_two_looks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = AT_ONCE + 2
    assert watched(monkeypatch, [100, 100 - taken, 100 - taken], every_s=CALL_S / 100).found_many_taken


def test_calls_that_are_much_shorter_than_the_mean_are_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not watched(monkeypatch, [100, 90, 80], every_s=CALL_S / 5).found_many_taken
