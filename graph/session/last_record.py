"""The end of a session: what its archive stores then, and the run's files."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.session.outputs import SearchResult, write_result
from ridgeline.graph.session.replaying import tell_replayed
from ridgeline.tools.errors import NotBegun, RidgelineError, StorageError, one_line
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.printable import encodable
from ridgeline.tools.records.vocabulary import RunState

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.events import OnEvent
    from ridgeline.graph.session.options import ResolvedSearch

logger = logger_of(__name__)

_MOST_CHARS = 500
"""Of an error in a search's record; run.log has the whole."""


@contextlib.asynccontextmanager
async def recorded(context: SearchContext, search: ResolvedSearch, on_event: OnEvent) -> AsyncIterator[None]:
    """Store, however the block ends, the state that it leaves the search in, what ended it, its time and its sandbox.

    A report of an earlier session says then that the search goes on no more; of a block that ends well, `end_search` writes it.
    """
    from langgraph.errors import GraphDrained, GraphInterrupt

    state = RunState.RUNNING  # of a search that a fault ends, or whose files are not written yet: it can be resumed
    ended_by = ""
    try:
        yield
    except (GraphDrained, NotBegun, asyncio.CancelledError):
        state = RunState.STOPPED
        raise
    except GraphInterrupt:
        state = RunState.WAITING
        raise
    except Exception as error:
        ended_by = fault_words(error)
        raise
    finally:
        replay = await run_whole(search.replay.to_json, context.archive) if search.replay else None
        await run_whole(store_session, context, RunRecord(state=state, ended_by=ended_by, replay=replay))
        if ended_by or state is not RunState.RUNNING:
            await run_whole(_end_report, context.archive)
        tell_replayed(replay, on_event)


def fault_words(error: Exception) -> str:
    """Return what a search's record says of the error that ended it."""
    said = one_line(error) if isinstance(error, RidgelineError) else f"{type(error).__name__}: {one_line(error)}"
    return encodable(said)[:_MOST_CHARS]


def store_session(context: SearchContext, record: RunRecord | None = None) -> None:
    """Store with `record` what a session adds to it: the seconds so far, and the tier of isolation."""
    tier = _sandbox_tier(context.archive)
    context.archive.save_run(replace(record or RunRecord(), wall_s=context.wall_s, sandbox_tier=tier))


def _end_report(archive: Archive) -> None:
    """Write the end into the report; a folder that takes none must not hide what ended the search."""
    from ridgeline.checkpoints.report.outputs import end_report

    try:
        end_report(archive.path.parent, archive)
    except StorageError:
        logger.warning("the report keeps what it said before the search ended", exc_info=True)


def end_search(run_dir: Path, archive: Archive, state: RunState) -> SearchResult:
    """Write the run's files, then store how the search ended: until they exist, it can be resumed."""
    result = write_result(run_dir, archive, state)
    archive.save_run(RunRecord(state=state))
    return result


def end_host_search(context: SearchContext, state: RunState) -> None:
    """End a search that a host's graph ran with a context of its own: as a session does that runs it itself."""
    store_session(context)
    end_search(context.archive.path.parent, context.archive, state)


def _sandbox_tier(archive: Archive) -> str | None:
    """Return the tier of isolation that the candidates ran in; None before one has run."""
    tiers = (e.verdict.sandbox_tier for e in archive.evaluations() if e.verdict is not None)
    return next((tier for tier in tiers if tier), None)
