"""What counts as a candidate of the window, and when the window closes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Told:
    """A tally of ten seconds and what it is told, each event a second after the one before."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.tally = import_module("tally").Tally(10.0, clock)

    def say(self, event: str, after_s: float = 1.0, **fields: Any) -> bool:
        self.clock.now_s += after_s
        return bool(self.tally.take({"event": event, **fields}))

    def done(self, candidate_id: str, status: str = "ok", after_s: float = 1.0) -> bool:
        return self.say("candidate_done", after_s, candidate_id=candidate_id, status=status)


@pytest.fixture
def told() -> Told:
    return Told(Clock())


def test_tally_counts_whatever_ended_in_the_window_and_nothing_before_or_after(told: Told) -> None:
    assert not told.say("baseline")
    assert not told.done("seed")
    assert not told.say("round_started")
    assert not told.done("r1i0v0a0")
    assert not told.done("r1i0v0a1", "wrong")
    assert not told.say("round_started", 3.0)  # a later round opens no window
    assert not told.done("r1i0v0a1t0", after_s=4.0)
    assert told.done("late", after_s=2.0)
    assert told.tally.figures() == {
        "candidates": 3,
        "window_s": 10.0,
        "candidates_per_minute": 18.0,
        "statuses": {"ok": 2, "wrong": 1},
    }


def test_tally_closes_with_a_search_that_ends_by_itself(told: Told) -> None:
    told.say("round_started")
    told.done("r1i0v0a0", after_s=2.0)
    assert told.say("stopped", 2.0)
    assert told.done("certified", after_s=1.0)
    assert told.tally.figures()["candidates_per_minute"] == 15.0


def test_tally_of_a_search_without_a_round_has_no_rate(told: Told) -> None:
    told.say("stopped")
    figures = told.tally.figures()
    assert (figures["candidates"], figures["candidates_per_minute"]) == (0, None)
