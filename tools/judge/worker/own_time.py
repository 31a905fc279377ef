"""The time that this process takes, but for what its threads wait for a core: other programs' load is no part of it.

What a limit leaves out would else depend on the load: on a busy machine a reference would have fewer trials.
"""

from __future__ import annotations

import os
import time

from ridgeline.tools.machine.process_use import waited_s

_LEAST_OWN = 1 / 20
"""Part of the time by the clock that counts at least: threads that wait for each other may all wait for cores at once."""


class OwnTime:
    """Measures from now on."""

    def __init__(self) -> None:
        """Begin."""
        self._waited_s = waited_s(os.getpid())
        self._began_s = time.perf_counter()

    def seconds(self) -> float:
        """Return the seconds so far."""
        by_clock_s = time.perf_counter() - self._began_s
        return max(by_clock_s - (waited_s(os.getpid()) - self._waited_s), _LEAST_OWN * by_clock_s)
