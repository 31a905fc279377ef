"""Counts the candidates that a search evaluates within a window of time, from the events that it tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any


class Tally:
    """The window opens with the first round, when reference and seeds are measured, and closes `window_s` later.

    It closes earlier when the search says that it ends. A candidate counts when its evaluation ended inside the window,
    whatever its status, tuned ones included.
    """

    def __init__(self, window_s: float, clock: Callable[[], float]) -> None:
        self._window_s = window_s
        self._clock = clock
        self._opened_s: float | None = None
        self._ended_s: float | None = None
        self.statuses: dict[str, str] = {}  # by candidate's id

    def take(self, event: Mapping[str, Any]) -> bool:
        """Note one event; return whether the window is closed."""
        now_s = self._clock()
        if event["event"] == "round_started" and self._opened_s is None:
            self._opened_s = now_s
        if self._opened_s is None:
            return False
        if event["event"] == "stopped" and self._ended_s is None:
            self._ended_s = now_s
        if self._ended_s is None and event["event"] == "candidate_done" and now_s <= self._opened_s + self._window_s:
            self.statuses[event["candidate_id"]] = event["status"]
        return self._ended_s is not None or now_s > self._opened_s + self._window_s

    @property
    def open_s(self) -> float:
        """Return how long the window was open; 0 when no round began."""
        if self._opened_s is None:
            return 0.0
        ended_s = self._clock() if self._ended_s is None else self._ended_s
        return min(ended_s - self._opened_s, self._window_s)

    def figures(self) -> dict[str, Any]:
        """Return the count, the rate and how the candidates ended."""
        count = len(self.statuses)
        return {
            "candidates": count,
            "window_s": self.open_s,
            "candidates_per_minute": 60 * count / self.open_s if self.open_s else None,
            "statuses": dict(Counter(self.statuses.values())),
        }
