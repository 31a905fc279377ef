"""A search that another process asks to stop (`ridgeline stop`): it ends after the steps in flight, as at a signal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ridgeline.checkpoints.steering import Steering
from ridgeline.tools.machine.logs import logger_of

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.events import SearchEvent

logger = logger_of(__name__)

LOOK_EVERY_S = 0.5
ASKED = "ridgeline stop"


def now_in_utc() -> str:
    """Return the time as the archive's columns have it."""
    return f"{datetime.now(UTC).isoformat(timespec='milliseconds').partition('+')[0]}Z"


@contextlib.asynccontextmanager
async def obeying_stop(
    archive: Archive, control: RunControl, *, since: str, on_event: Callable[[SearchEvent], None] | None
) -> AsyncIterator[None]:
    """Ask `control` to drain once a stop is stored, while the block runs; a stop from before `since` met another session."""
    await asyncio.to_thread(Steering(archive).take_stop, before=since)
    watching = asyncio.create_task(_watch(Steering(archive), control, on_event))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(steering: Steering, control: RunControl, on_event: Callable[[SearchEvent], None] | None) -> None:
    while not await asyncio.to_thread(steering.take_stop):
        await asyncio.sleep(LOOK_EVERY_S)
    reason = f"{ASKED}: stopping after the steps in flight"
    logger.info("%s", reason)
    control.request_drain(ASKED)
    if on_event is not None:
        on_event({"event": "stopped", "outcome": "stopping", "reason": reason})
