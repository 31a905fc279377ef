"""Work done side by side, of which nothing goes on once one part has failed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ridgeline.graph.models.later_replies import ReplyPending
from ridgeline.tools.errors import DeviceAway, NotBegun

T = TypeVar("T")


async def gather_or_cancel(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Return all results, or end all the work before an exception is raised.

    NotBegun waits for the work that had begun: a stop drops only the work that waits for its turn. So does a pending
    reply: the other models' calls are paid for. So does a device elsewhere: what can be built here is stored. Any other
    exception cancels the rest. Otherwise the rest would go on with an engine that is being closed, and kernels would be
    stored as ones that the engine failed on.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    except (NotBegun, DeviceAway, ReplyPending):
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
