"""The time that a search takes, and the part of it that a budget counts: that in which it looks for kernels.

A host may wait for days between the nodes of a search, with its context open.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class WorkingTime:
    """The time of a search, without that between an interrupt and the node after it, in which no node works.

    The search looks for kernels from the beginning of a node that `finds` some to that of one that does not.
    """

    before_s: float = 0.0  # of earlier sessions of the same search
    finding_before_s: float = 0.0  # in which it looked for kernels, until it last ceased to
    started_s: float = field(default_factory=time.monotonic)
    _nodes: int = 0
    _is_interrupted: bool = False  # since the last time that no node worked
    _rests_since_s: float | None = None
    _rested_s: float = 0.0
    _finds_since_s: float | None = None  # of `all_s`

    @contextlib.contextmanager
    def node(self, *, finds: bool) -> Iterator[None]:
        """Count a node as at work while the block runs; `finds` says whether it looks for kernels."""
        if self._rests_since_s is not None:
            self._rested_s += time.monotonic() - self._rests_since_s
        self._rests_since_s = None
        if finds and self._finds_since_s is None:
            self._finds_since_s = self.all_s
        elif not finds:
            self.finding_before_s, self._finds_since_s = self.finding_s, None
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

    @property
    def finding_s(self) -> float:
        """Return the seconds until now in which the search looked for kernels, without all rests."""
        return self.finding_before_s + (self.all_s - self._finds_since_s if self._finds_since_s is not None else 0.0)
