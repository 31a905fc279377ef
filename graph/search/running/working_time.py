"""The time that a search takes: a host may wait for days between its nodes, with the search's context open."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class WorkingTime:
    """The time of a search, without that between an interrupt and the node after it, in which no node works."""

    before_s: float = 0.0  # of earlier sessions of the same search
    started_s: float = field(default_factory=time.monotonic)
    _nodes: int = 0
    _is_interrupted: bool = False  # since the last time that no node worked
    _rests_since_s: float | None = None
    _rested_s: float = 0.0

    @contextlib.contextmanager
    def node(self) -> Iterator[None]:
        """Count a node as at work while the block runs."""
        if self._rests_since_s is not None:
            self._rested_s += time.monotonic() - self._rests_since_s
        self._rests_since_s = None
        self._nodes += 1
        try:
            yield
        finally:
            self._nodes -= 1
            if self._nodes == 0 and self._is_interrupted:
                self._rests_since_s, self._is_interrupted = time.monotonic(), False

    def interrupted(self) -> None:
        """Take the time from the end of the nodes at work now to the next node's beginning for a rest."""
        self._is_interrupted = True

    @property
    def all_s(self) -> float:
        """Return the seconds until now, without all rests."""
        now_s = time.monotonic()
        rested_s = self._rested_s + (now_s - self._rests_since_s if self._rests_since_s is not None else 0.0)
        return self.before_s + now_s - self.started_s - rested_s
