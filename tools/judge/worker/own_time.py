"""The time that this process takes, but for what its threads wait for a core: other programs' load is no part of it.

What a limit leaves out would else depend on the load: on a busy machine a reference would have fewer trials.
"""

from __future__ import annotations

import os
import threading
import time

from ridgeline.tools.machine.process_use import waits_ns

_MOST_BY_CLOCK = 5.0
"""A limit ends after so many times its seconds by the clock, whatever waited: loading has a limit by the clock."""


class OwnTime:
    """Measures from now on."""

    def __init__(self) -> None:
        """Begin."""
        self._waits_ns = waits_ns(os.getpid())
        self._began_s = time.perf_counter()

    def is_beyond(self, limit_s: float, *, by_clock_s: float | None = None) -> bool:
        """Return whether it is longer than a limit, or than `by_clock_s` by the clock: 5 limits, if that is not given."""
        clock_s = time.perf_counter() - self._began_s
        if clock_s <= limit_s:
            return False
        return clock_s > (by_clock_s or _MOST_BY_CLOCK * limit_s) or clock_s - self._waited_s() > limit_s

    def _waited_s(self) -> float:
        """Return what this thread waited for cores, and the other one that waited longest: one mostly waits for it then."""
        own, waited = str(threading.get_native_id()), waits_ns(os.getpid())
        since = {task: max(0, ns - self._waits_ns.get(task, 0)) for task, ns in waited.items()}
        return (since.pop(own, 0) + max(since.values(), default=0)) / 1e9
