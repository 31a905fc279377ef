"""The pauses between a search's kernels: the device is free then for work that can wait."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

QUIET_S = 1.0
"""A kernel is between two steps for some milliseconds, for a checkpoint; a longer pause means that models are at work."""
LOOK_EVERY_S = 0.05


@dataclass(slots=True, kw_only=True)
class Pauses:
    """Counts the kernel steps under way in one search."""

    steps: int = 0
    last_ended_s: float = -math.inf  # time.monotonic()
    is_awaited: bool = False

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Count one kernel's step while the block runs, its wait for the device included."""
        self.steps += 1
        try:
            yield
        finally:
            self.steps -= 1
            self.last_ended_s = time.monotonic()

    def end_waits(self) -> None:
        """Let work that waits for a pause go on at once, because the search itself waits for that work now."""
        self.is_awaited = True

    async def wait(self) -> None:
        """Return once no kernel's step was under way for QUIET_S, or after `end_waits`."""
        while not self.is_awaited and (self.steps or time.monotonic() - self.last_ended_s < QUIET_S):
            await asyncio.sleep(LOOK_EVERY_S)
