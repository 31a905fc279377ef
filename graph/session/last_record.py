"""The record of a session: what its archive stores as its search begins, goes on and ends, and the run's files."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.session.first_record import begin
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
    from ridgeline.graph.search.running.working_time import WorkingTime
    from ridgeline.graph.session.options import ResolvedSearch

logger = logger_of(__name__)

_MOST_CHARS = 500
"""Of an error in a search's record; run.log has the whole."""


class _Stage(Enum):
    """The stage of a session: how far it is with its search."""

    OPENED = "opened"
    """Nothing is stored of the session."""
    BEGUN = "begun"
    """The search's state is still what an earlier session left: it may have nothing to do."""
    RUNNING = "running"
    ENDED = "ended"
    """Its host may still extend the search."""
    LEFT = "left"
    """The session is over: of a host's graph that still works, as one whose stream is closed late, its end alone is stored."""


@dataclass(slots=True, kw_only=True)
class SessionRecord:
    """The record of one session: that its search begins, that it goes on, and once how it ended. It asks the disk."""

    archive: Archive
    search: ResolvedSearch
    context: SearchContext | None = None  # once everything is open
    replay: Mapping[str, Any] | None = None  # what was stored of a replay
    _stage: _Stage = _Stage.OPENED
    _one_at_a_time: threading.Lock = field(
        default_factory=threading.Lock
    )  # of a host's nodes, which begin side by side, and of the session's own end

    def begin(self) -> WorkingTime:
        """Store a new search, which runs then, or a resumed one's request; return the search's clock."""
        working = begin(self.archive, self.search)
        self._stage = _Stage.BEGUN if self.search.has_begun else _Stage.RUNNING
        return working

    def go_on(self) -> None:
        """Store that the search runs, unless it does or was left: a resumed one, or one that its host extends after its end."""
        from ridgeline.checkpoints.report.outputs import renew_report

        with self._one_at_a_time:
            if self._stage not in (_Stage.RUNNING, _Stage.LEFT):
                self.archive.save_run(RunRecord(state=RunState.RUNNING))
                self._stage = _Stage.RUNNING
                renew_report(self.archive.path.parent, self.archive)

    def renew_report(self) -> None:
        """Write the report of a search that goes on anew, as `checkpoints.report.outputs.renew_report` does."""
        from ridgeline.checkpoints.report.outputs import renew_report

        with self._one_at_a_time:
            if self._stage is _Stage.RUNNING:
                renew_report(self.archive.path.parent, self.archive)

    def end(self, state: RunState) -> SearchResult:
        """Write the run's files, then store how the search ended: until they exist, it can be resumed."""
        with self._one_at_a_time:
            self.archive.save_run(self._with_finds(self._timed(RunRecord())))
            result = write_result(self.archive.path.parent, self.archive, state)
            self.archive.save_run(RunRecord(state=state))
            if self._stage is not _Stage.LEFT:
                self._stage = _Stage.ENDED
        return result

    def leave(self, left: RunRecord) -> None:
        """Store how a session left a search that it did not end, and the end into a report that says that it goes on.

        A search that did not go on keeps the state that it had. What cannot be stored must not hide what ended the session.
        """
        with self._one_at_a_time:
            stage, self._stage = self._stage, _Stage.LEFT
            if stage in (_Stage.BEGUN, _Stage.RUNNING):
                self._store_left(left, was_running=stage is _Stage.RUNNING)

    def _store_left(self, left: RunRecord, *, was_running: bool) -> None:
        from ridgeline.checkpoints.report.outputs import end_report

        was_killed = self.search.begun.state is RunState.RUNNING
        left = self._timed(replace(left, state=left.state if was_running else None))
        with _logged("what the archive would tell of the session is not stored"):  # it may be what is damaged
            left = self._with_finds(left)
        with _logged("how the session ended is not stored"):
            self.archive.save_run(left)
        if was_running or was_killed:
            with _logged("the report keeps what it said before the search ended"):
                end_report(self.archive.path.parent, self.archive)

    def _timed(self, record: RunRecord) -> RunRecord:
        """Return `record` with the seconds so far; as it is where the session has no context yet."""
        if self.context is None:
            return record
        return replace(record, wall_s=self.context.wall_s, finding_s=self.context.finding_s)

    def _with_finds(self, record: RunRecord) -> RunRecord:
        """Return `record` with the tier of isolation and how a replay's questions were answered, as the archive tells it."""
        self.replay = self.search.replay.to_json(self.archive) if self.search.replay else None
        return replace(record, sandbox_tier=_sandbox_tier(self.archive), replay=self.replay)


@contextlib.asynccontextmanager
async def recorded(archive: Archive, search: ResolvedSearch, on_event: OnEvent) -> AsyncIterator[SessionRecord]:
    """Give what a session stores of its search; of a search that the block does not end, it stores how the block ended.

    That is one piece of work, which a further cancellation waits for.
    """
    record, left = SessionRecord(archive=archive, search=search), RunRecord()
    try:
        yield record
    except BaseException as error:
        left = left_by(error)
        raise
    finally:
        await run_whole(record.leave, left)
        tell_replayed(record.replay, on_event)


def left_by(error: BaseException) -> RunRecord:
    """Return what is stored of a search that `error` ends in its middle: no other state than `running` where it is a fault."""
    from langgraph.errors import GraphDrained, GraphInterrupt

    if isinstance(error, GraphDrained | NotBegun | asyncio.CancelledError):
        return RunRecord(state=RunState.STOPPED)
    if isinstance(error, GraphInterrupt):
        return RunRecord(state=RunState.WAITING)
    return RunRecord(ended_by=fault_words(error)) if isinstance(error, Exception) else RunRecord()


@contextlib.contextmanager
def _logged(said: str) -> Iterator[None]:
    """Log what the disk refuses in the block."""
    try:
        yield
    except StorageError:
        logger.warning("%s", said, exc_info=True)


def fault_words(error: Exception) -> str:
    """Return what a search's record says of the error that ended it."""
    said = one_line(error) if isinstance(error, RidgelineError) else f"{type(error).__name__}: {one_line(error)}"
    return encodable(said)[:_MOST_CHARS]


def _sandbox_tier(archive: Archive) -> str | None:
    """Return the tier of isolation that the candidates ran in; None before one has run."""
    tiers = (e.verdict.sandbox_tier for e in archive.evaluations() if e.verdict is not None)
    return next((tier for tier in tiers if tier), None)
