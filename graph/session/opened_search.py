"""The things that a session opens: the run folder, which it holds, the archive, this machine's engine, the seed bank.

Everything that waits for a disk does so in a thread: a host's event loop goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.bank import Bank, own_bank
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.runs.clean import remove_held
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.graph.models.later_replies import Waiting
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.search.context import EndedBy
from ridgeline.graph.search.events import viewer_of
from ridgeline.graph.session import machine
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.first_record import tell_beyond, tell_unpriced
from ridgeline.graph.session.last_record import SessionRecord, recorded
from ridgeline.graph.session.parking import on_requests
from ridgeline.graph.session.run_log import log_to
from ridgeline.graph.session.stopping import now_in_utc, obeying_stop
from ridgeline.tools.errors import InputError, StorageError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from ridgeline.graph.models.search_model import AnyModel
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.events import OnEvent
    from ridgeline.graph.search.running.measuring import Measuring
    from ridgeline.graph.session.options import ResolvedSearch, SearchRequest
    from ridgeline.tools.engine import Engine

logger = logger_of(__name__)

T = TypeVar("T")


@contextlib.asynccontextmanager
async def hold(
    search: ResolvedSearch,
    *,
    engine: Engine | None,
    on_event: OnEvent,
    stop: RunControl,
    interrupts: bool,
) -> AsyncIterator[tuple[SearchContext, SessionRecord]]:
    """Give the context of a search that this session runs to its end, files and all; `ridgeline stop` drains `stop`.

    run.log is written under the folder's lock: the log of a search that holds the folder is that search's alone.
    """
    was_missing = not await asyncio.to_thread(search.run_dir.exists)
    is_first = not await asyncio.to_thread(search.run_dir.parent.exists)
    with contextlib.ExitStack() as stack:
        await entered(stack, lock_run(search.run_dir))
        since = now_in_utc()
        stack.enter_context(log_to(search.run_dir / "run.log"))
        # another process may have searched here since: only what begins under this lock is this search's to remove
        is_new = was_missing and not await asyncio.to_thread((search.run_dir / FILE_NAME).exists)
        context: SearchContext | None = None
        try:
            stack.enter_context(machine.users_reference(search.problem, search.target.device.kind.value))
            opened = _open_locked(
                search,
                engine=engine,
                on_event=on_event,
                stop=stop,
                ended_by=EndedBy.SESSION,
                interrupts=interrupts,
            )
            async with (
                opened as (context, record),
                obeying_stop(context.archive, stop, since=since, on_event=on_event),
            ):
                yield context, record
        except InputError:
            if is_new and (context is None or context.described_target is None):
                # a mistake found before anything was measured leaves nothing to resume
                with contextlib.suppress(StorageError, OSError):  # another search may have come to the folder of runs
                    await asyncio.to_thread(remove_held, search.run_dir)
                    if is_first:
                        await asyncio.to_thread(search.run_dir.parent.rmdir)
            raise


@contextlib.asynccontextmanager
async def open_context(
    options: SearchRequest,
    *,
    engine: Engine | None = None,
    models: Sequence[AnyModel] | None = None,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
    interrupts: bool = True,
) -> AsyncIterator[SearchContext]:
    """Give the context of a search in its run folder, which is locked; everything opened is closed with the block.

    For a host that runs the graph itself, under its own checkpointer: `make_graph(GraphConfig(context=context))`. The
    context is one search's, of one thread. `run_search` does the same with a checkpointer in the run folder. `on_event`
    gets the engine's own event: another process has the device. Once `stop` is asked to drain, steps that wait for their
    turn are dropped: they raise NotBegun. A mailbox's request is LangGraph's interrupt; without `interrupts` the graph
    waits for the answer alive.

    Raises:
        InputError: as `run_search` does; a mistake leaves nothing half-written.
    """
    checked("on_event", on_event)
    search = await asyncio.to_thread(options.resolve, models=models, is_local=engine is None)
    with contextlib.ExitStack() as stack:
        await entered(stack, lock_run(search.run_dir))
        opened = _open_locked(
            search,
            engine=engine,
            on_event=viewer_of(on_event),
            stop=stop,
            ended_by=EndedBy.HOST,
            interrupts=interrupts,
        )
        async with opened as (context, _):
            yield context


@contextlib.asynccontextmanager
async def _open_locked(
    search: ResolvedSearch,
    *,
    engine: Engine | None,
    on_event: OnEvent,
    stop: RunControl | None,
    ended_by: EndedBy,
    interrupts: bool,
) -> AsyncIterator[tuple[SearchContext, SessionRecord]]:
    """Give the context of a search whose run folder this process holds, and what is stored of the session.

    That is stored before what the context holds is closed.
    """
    from ridgeline.graph.search.context import SearchContext, stored_target
    from ridgeline.graph.search.judging.compiled import end_compiled
    from ridgeline.graph.search.recorded_decisions import decisions_of

    async with contextlib.AsyncExitStack() as stack:
        is_local = engine is None and not search.replays_times and not search.away
        if engine is None:
            engine = await _open_engine(search, stack, on_event, stop)
        archive = await run_whole(_open_archive, search, stack)
        if search.replay is not None:
            await run_whole(search.replay.hand_over, search.run_dir, archive, resumes=search.has_begun)
        async with recorded(archive, search, on_event) as record:
            working = await run_whole(record.begin)
            models = ModelPool(search.models)
            is_hosts = ended_by is EndedBy.HOST
            context = record.context = SearchContext(
                problem=search.problem,
                target=search.target,
                described_target=await run_whole(stored_target, archive, search.target),
                facts=(await run_whole(archive.run)).facts or (),
                archive=archive,
                journal=Journal(archive),
                measuring=await _measuring(search, engine, archive, is_local=is_local),
                models=models,
                settings=search.settings,
                budget=search.budget,
                bank=await run_whole(_open_bank, search, stack),
                rng_seed=search.rng_seed,
                working=working,
                waiting=Waiting(
                    is_deferred=interrupts,
                    is_parking=search.park and not is_hosts,
                    tell=on_requests(search.run_dir, on_event),
                ),
                is_stopping=is_stopping(stop),
                replays_times=search.replays_times,
                decisions=decisions_of(search.replay.answers if search.replay else None, archive, models),
                ended_by=ended_by,
                go_on=record.go_on if is_hosts else None,
                renew_report=record.renew_report,
                finish=(lambda _, state: record.end(state)) if is_hosts else None,
            )
            tell_unpriced(context.models, on_event)
            tell_beyond(search, on_event)
            stack.push_async_callback(end_compiled, context)
            await run_whole(context.later.mailbox.publish)
            yield context, record


async def _open_engine(
    search: ResolvedSearch, stack: contextlib.AsyncExitStack, on_event: OnEvent, stop: RunControl | None
) -> Engine:
    """Return the engine of a search that was given none: its recording's, this machine's, or one without the device."""
    if search.replay is not None and search.replays_times:
        return search.replay.engine(search.target)
    opened = _away_engine if search.away else _local_engine
    return await stack.enter_async_context(opened(search, on_event, stop))


async def _measuring(search: ResolvedSearch, engine: Engine, archive: Archive, *, is_local: bool) -> Measuring:
    """Return how the search measures: by its engine and what the archive remembers, on as many devices as there are."""
    from ridgeline.graph.search.running.measuring import Measuring
    from ridgeline.tools.engines.remembering import RememberingEngine
    from ridgeline.tools.machine.load import cores_in_use

    return Measuring(
        engine=RememberingEngine(engine, archive, target=search.target),
        devices=await asyncio.to_thread(_devices, search) if is_local else 1,
        is_away=bool(search.away),
        cores_in_use=cores_in_use if is_local else None,
    )


async def entered(stack: contextlib.ExitStack, manager: AbstractContextManager[T]) -> T:
    """Enter in a thread what may wait for a disk; the stack leaves it, also where this task was cancelled meanwhile."""
    return await run_whole(stack.enter_context, manager)


@contextlib.asynccontextmanager
async def _local_engine(search: ResolvedSearch, on_event: OnEvent, stop: RunControl | None) -> AsyncIterator[Engine]:
    """Give the engine of this machine, after a warning when others keep the machine busy."""
    from ridgeline.graph.search.coverage import refuses_uncovered
    from ridgeline.tools.machine.load import busy_words

    opened = machine.open_engine(
        search.device,
        log=search.run_dir / "run.log",
        allow_unsafe=search.allow_unsafe,
        on_wait=machine.on_wait(on_event),
        is_stopping=is_stopping(stop),
        refuses=refuses_uncovered(search.problem, search.target.device.kind, composes_alone=search.composes_alone),
    )
    async with opened as engine:
        if words := await asyncio.to_thread(busy_words, search.target.device):
            on_event({"event": "warning", "message": words})
        yield engine


@contextlib.asynccontextmanager
async def _away_engine(search: ResolvedSearch, on_event: OnEvent, stop: RunControl | None) -> AsyncIterator[Engine]:
    """Give the engine of a search whose device is on another machine, and say so."""
    opened = machine.open_away_engine(
        search.target.device,
        log=search.run_dir / "run.log",
        allow_unsafe=search.allow_unsafe,
        is_stopping=is_stopping(stop),
    )
    async with opened as engine:
        logger.warning("%s", search.away)
        on_event({"event": "warning", "message": search.away})
        yield engine


def is_stopping(stop: RunControl | None) -> Callable[[], bool]:
    """Return what says whether a stop was asked for."""
    return lambda: stop is not None and stop.drain_requested


def _devices(search: ResolvedSearch) -> int:
    return len(machine.measuring_devices(search.device, search.target.device))


def _open_archive(search: ResolvedSearch, stack: contextlib.AsyncExitStack) -> Archive:
    """Return the run's archive; the stack closes it, also where this task was cancelled meanwhile."""
    archive = Archive.open(search.run_dir / FILE_NAME, create=not search.resume)
    stack.push_async_callback(run_whole, archive.close)
    return archive


def _open_bank(search: ResolvedSearch, stack: contextlib.AsyncExitStack) -> Bank | None:
    """Return the seed bank; None when the search has none, or when the user's own bank cannot be opened or is damaged."""
    if search.bank is None:
        return None
    try:
        with contextlib.ExitStack() as opened:
            bank = opened.enter_context(Bank.open(search.bank))
            bank.check()
            stack.push(opened.pop_all())
    except StorageError as error:
        if search.bank != own_bank():
            raise
        logger.warning("going on without the seed bank: %s", error)
        return None
    return bank
