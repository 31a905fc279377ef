"""A search's events as the lines of a log, for a program that has its own place for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ridgeline.graph.cli.view.board import Board
from ridgeline.graph.cli.view.lines import plain_line
from ridgeline.graph.search.events import is_event
from ridgeline.tools.records.printable import printable


class EventLines:
    """The lines of one search, called with each of its events: a line tells of those before it too."""

    def __init__(self, board: Board | None = None) -> None:
        """Begin with a board of the caller's, or with an empty one."""
        self._board = board or Board(problem="", device="", models=())
        self._ends_with_wait = False

    def __call__(self, event: object) -> str:
        """Return an event's line, "" for one that says nothing new; that a wait is over, only after the line of that wait.

        What is no event of a search has no line either: a graph's stream also holds what its other nodes write there.
        """
        return self._line(event) if is_event(event) else ""

    def _line(self, event: Mapping[str, Any]) -> str:
        self._board.apply(event)
        line = plain_line(event, self._board)
        is_wait = event["event"] == "waiting"
        if not line or (is_wait and not event["holder"] and not self._ends_with_wait):
            return ""
        self._ends_with_wait = is_wait and bool(event["holder"])
        return printable(line)
