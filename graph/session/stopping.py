"""A search that another process asks to stop (`ridgeline stop`): it ends after the steps in flight, as at a signal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.runs.folders import begun_record, is_locked
from ridgeline.checkpoints.steering import Steer, Steering, SteerKind
from ridgeline.checkpoints.storage.own_files import refuse_links
from ridgeline.graph.state import GRAPH_VERSION
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from ridgeline.graph.search.events import OnEvent

logger = logger_of(__name__)

LOOK_EVERY_S = 0.5
ASKED = "ridgeline stop"


def now_in_utc() -> str:
    """Return the time as the archive's columns have it."""
    return f"{datetime.now(UTC).isoformat(timespec='milliseconds').partition('+')[0]}Z"


def ask_to_stop(run: Path) -> Steer:
    """Store in a run that its search is to stop, whatever process it is; it can be resumed.

    Raises:
        RunError: no process searches there, the search has not begun yet, or the run is of another version.
    """
    begun_record(run, GRAPH_VERSION)
    if not is_locked(run):
        raise RunError(f"{run}: no process searches in it now; there is nothing to stop")
    refuse_links(run)
    with Archive.open(run, create=False) as archive:
        return Steering(archive).add_stop()


@contextlib.asynccontextmanager
async def obeying_stop(archive: Archive, control: RunControl, *, since: str, on_event: OnEvent) -> AsyncIterator[None]:
    """Ask `control` to drain once a stop is stored, while the block runs; a stop from before `since` met another session.

    A stop stays stored until the block ends, so that others see that the search was told.
    """
    await run_whole(Steering(archive).take_stop, before=since)
    watching = asyncio.create_task(_watch(Steering(archive), control, on_event))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        if control.drain_requested:
            with contextlib.suppress(StorageError):  # the next session drops it, which came before that
                await run_whole(Steering(archive).take_stop)


async def _watch(steering: Steering, control: RunControl, on_event: OnEvent) -> None:
    said = ""
    while True:
        try:
            if await run_whole(steering.told, SteerKind.STOP):
                break
        except StorageError as error:  # another process holds the archive, or a disk is full: the next look may do
            if str(error) != said:
                said = str(error)
                logger.warning("no look for %s: %s", ASKED, error)
        await asyncio.sleep(LOOK_EVERY_S)
    reason = f"{ASKED}: stopping after the steps in flight"
    logger.info("%s", reason)
    control.request_drain(ASKED)
    on_event({"event": "stopped", "outcome": "stopping", "reason": reason})
