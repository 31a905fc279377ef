"""The time that a candidate may take: for one loop, and for all that one step asks of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.failures import RunnerFailure

_FEW_CALLS = 3  # of a slow kernel in one loop, at most; one of many calls lasts milliseconds
_MANY_CALLS_S = 10.0


def loop_limit_s(calls: int, call_timeout_s: float) -> float:
    """Return how long a loop may take: as many times the longest call as it has calls, where these are few."""
    return min(max(2, calls) * call_timeout_s, max(_FEW_CALLS * call_timeout_s, _MANY_CALLS_S))


class Deadline:
    """The time that a step may wait for one candidate, over all of its runners; the judge's own work takes none of it."""

    def __init__(self, limit_s: float, step: str, *, further_s: float = 0.0) -> None:
        """Begin with all of `limit_s`; `step` is "verification" or "timing". `extend` adds `further_s`, once."""
        self._limit_s = limit_s
        self._further_s = further_s
        self._step = step
        self._spent_s = 0.0

    @property
    def left_s(self) -> float:
        """Return what is left, 0 at least."""
        return max(0.0, self._limit_s - self._spent_s)

    def extend(self) -> None:
        """Grant the further time: more is asked of the candidate than was planned."""
        self._limit_s += self._further_s
        self._further_s = 0.0

    @contextmanager
    def charged(self) -> Iterator[None]:
        """Take the time of the block off what is left."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._spent_s += time.monotonic() - started

    def passed(self, moment: str) -> RunnerFailure:
        """Return the failure of a candidate that used up its time."""
        reason = (
            f"loading it and its calls took the {self._limit_s:g} s that {self._step} may wait for one kernel: stopped "
            f"{moment}; make it faster, or raise call_timeout_s in problem.yaml, of which this is a multiple"
        )
        return RunnerFailure(ReasonCode.EVALUATION_DEADLINE, reason)
