"""Work that a stop does not wait for: what is in flight is left, and a resumed search does it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ridgeline.tools.errors import NotBegun

T = TypeVar("T")

LOOK_EVERY_S = 0.1


async def left_at_stop(work: Coroutine[Any, Any, T], *, is_stopping: Callable[[], bool]) -> T:
    """Return the result of `work`, or raise what it raises; once `is_stopping()`, end it first.

    Raises:
        NotBegun: a stop was asked for.
    """
    task = asyncio.ensure_future(work)
    try:
        while not is_stopping() and not task.done():
            await asyncio.wait({task}, timeout=LOOK_EVERY_S)
        if task.done():
            return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    raise NotBegun("a stop was asked for: what was in flight is left")
