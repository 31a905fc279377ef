"""The time that a call of the reference may take where contents are tried on it that it may have no use for.

A loop that ends once a tolerance is reached may never end with larger weights. That refuses the weights, and not the
reference.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from ridgeline.tools.errors import REFERENCE, BadReferenceError
from ridgeline.tools.judge.worker.own_time import OwnTime

_TIMES = 20.0
"""A call may take this x the shortest of its kind so far: denormal numbers take a CPU some ten times as long as others."""
_LEAST_S = 0.5
"""A call may always take this: whatever else the machine does comes between."""
_OWN = 1 / 2
"""Part of the time allowed in which the thread itself was at work, where the call is ended: a stopped machine ends none.

Nor does a busy one, before `_MOST_S`: what the thread, or one that it waits for, waited for a core is not counted.
"""
_MOST_S = 10.0


class TakesTooLongError(BadReferenceError):
    """A call took far longer than it usually does."""


class Patience:
    """Measures the reference's calls, and ends one that takes far longer, inside the reference's own Python code.

    A call inside a library goes on until that returns. Beyond the main thread no call is ended, nor before one was measured.
    """

    def __init__(self) -> None:
        """Know of no call yet."""
        self._shortest_s: dict[str, float] = {}
        self._is_trying = False

    @contextlib.contextmanager
    def trying(self) -> Iterator[None]:
        """End calls that take too long meanwhile."""
        before, self._is_trying = self._is_trying, True
        try:
            yield
        finally:
            self._is_trying = before

    @contextlib.contextmanager
    def applied(self, kind: str) -> Iterator[None]:
        """Measure the block, a call of this kind.

        Raises:
            TakesTooLongError: it takes too long, while contents are tried.
        """
        limit_s = max(_LEAST_S, _TIMES * self._shortest_s.get(kind, float("inf")))
        may_end = self._is_trying and limit_s < float("inf") and threading.current_thread() is threading.main_thread()
        began_s = time.perf_counter()
        with _alarm(limit_s) if may_end else contextlib.nullcontext():
            yield
        self._shortest_s[kind] = min(time.perf_counter() - began_s, self._shortest_s.get(kind, float("inf")))


@contextlib.contextmanager
def _alarm(limit_s: float) -> Iterator[None]:
    """Raise in the reference's code once a block took this long, and again where that was caught there."""
    began_s, spent = time.thread_time(), OwnTime()

    def ring(_number: int, frame: FrameType | None) -> None:
        was_at_work = time.thread_time() - began_s >= _OWN * limit_s
        if was_at_work and spent.is_beyond(limit_s, by_clock_s=max(_MOST_S, 2 * limit_s)) and _is_in_reference(frame):
            raise TakesTooLongError.of_text(
                f"forward() took longer than {limit_s:.2g} s, far more than it usually does"
            )

    handler = signal.signal(signal.SIGALRM, ring)
    rest_s, interval_s = signal.setitimer(signal.ITIMER_REAL, limit_s, limit_s)
    started_s = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if rest_s:
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, rest_s - (time.monotonic() - started_s)), interval_s)


def _is_in_reference(frame: FrameType | None) -> bool:
    """Return whether the reference's code runs: it catches what is raised, or lets it end the call."""
    while frame is not None:
        if frame.f_code.co_filename == REFERENCE:
            return True
        frame = frame.f_back
    return False
