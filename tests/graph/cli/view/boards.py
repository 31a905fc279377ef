"""The board of a search, with a clock that a test moves."""

from __future__ import annotations

from ridgeline.graph.cli.view.board import Board


class Clock:
    """A clock that a test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def make_board(clock: Clock | None = None) -> Board:
    return Board(problem="toy", device="cpu", models=("scripted",), clock=clock or Clock())
