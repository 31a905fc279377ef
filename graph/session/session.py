"""One search in its run folder: lock, archive, checkpoints, engine, the graph's stream, the result.

The command line and the library both come through here; nothing else opens a run folder to search in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.bank import Bank, own_bank
from ridgeline.checkpoints.journal import Journal
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs import lock_run
from ridgeline.checkpoints.saver import open_saver, prune
from ridgeline.checkpoints.storage_errors import record_errors
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.session import machine
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.beginning import begin
from ridgeline.graph.session.outputs import SearchResult, write_result
from ridgeline.graph.session.resume import begin_again, extension
from ridgeline.graph.session.run_log import log_to
from ridgeline.graph.state import outcome_of
from ridgeline.tools.errors import InputError, NotBegun, StorageError
from ridgeline.tools.records.vocabulary import RunState

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.runtime import RunControl

    from ridgeline.graph.models.requests import KernelModel
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.events import SearchEvent
    from ridgeline.graph.session.options import ResolvedSearch, SearchRequest
    from ridgeline.tools.engine import Engine
    from ridgeline.tools.machine.waits import Listener, Wait

logger = logging.getLogger(__name__)

THREAD_ID = "search"
_THREAD: Any = {"configurable": {"thread_id": THREAD_ID}}
CHECKPOINTS = "search.sqlite"
OnEvent = Callable[["SearchEvent"], None]


async def run_search(
    options: SearchRequest,
    *,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
    engine: Engine | None = None,
    models: Sequence[KernelModel] | None = None,
) -> SearchResult:
    """Run or resume a search to its end, or until `stop.request_drain()`; then it can be resumed exactly there.

    `engine` and `models` replace what the options would open; an engine that is passed in is not closed.

    Raises:
        InputError: invalid input; one line says how to fix it. Nothing was started, or the search can be resumed.
        EngineError: the machine failed; the search can be resumed.
    """
    checked("on_event", on_event)
    search = await asyncio.to_thread(options.resolve, models=models, is_local=engine is None)
    return await run_resolved(search, on_event=on_event, stop=stop, engine=engine)


async def run_resolved(
    search: ResolvedSearch,
    *,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
    engine: Engine | None = None,
    is_logged: bool = False,
) -> SearchResult:
    """Run a search as `run_search` does, once everything about it is decided.

    With `is_logged` run.log is written. It lies under the folder's lock: the log of a search that holds the folder is
    that search's alone.
    """
    was_missing = not search.run_dir.exists()
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock_run(search.run_dir))
        if is_logged:
            stack.enter_context(log_to(search.run_dir / "run.log"))
        # another process may have searched here since: only what begins under this lock is this search's to remove
        is_new = was_missing and not (search.run_dir / FILE_NAME).exists()
        context: SearchContext | None = None
        try:
            stack.enter_context(machine.users_reference(search.problem, search.target.device.kind.value))
            opened = _open_locked(search, engine=engine, on_event=on_event, stop=stop, writes_files=True)
            async with opened as context:
                async with open_saver(search.run_dir / CHECKPOINTS) as saver:
                    state = await _drive(context, saver, search, on_event, stop)
                return await asyncio.to_thread(_end, search, context.archive, state)
        except InputError:
            if is_new and (context is None or context.described_target is None):
                # a mistake found before anything was measured leaves nothing to resume
                shutil.rmtree(search.run_dir, ignore_errors=True)
            raise


# ------------------------------------------------------------------------------------------------------ what is opened


@contextlib.asynccontextmanager
async def open_context(
    options: SearchRequest,
    *,
    engine: Engine | None = None,
    models: Sequence[KernelModel] | None = None,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
) -> AsyncIterator[SearchContext]:
    """Give the context of a search in its run folder, which is locked; everything opened is closed with the block.

    For a host that runs the graph itself, under its own checkpointer: `make_graph(GraphConfig(context=context))`.
    `run_search` does the same with a checkpointer in the run folder. `on_event` gets the engine's own event: another
    process has the device. Once `stop` is asked to drain, steps that wait for their turn are dropped: they raise
    NotBegun.

    Raises:
        InputError: as `run_search` does; a mistake leaves nothing half-written.
    """
    checked("on_event", on_event)
    search = await asyncio.to_thread(options.resolve, models=models, is_local=engine is None)
    async with open_resolved(search, engine=engine, on_event=on_event, stop=stop) as context:
        yield context


@contextlib.asynccontextmanager
async def open_resolved(
    search: ResolvedSearch,
    *,
    engine: Engine | None = None,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
) -> AsyncIterator[SearchContext]:
    """Give the context as `open_context` does, once everything about the search is decided."""
    with lock_run(search.run_dir):
        async with _open_locked(search, engine=engine, on_event=on_event, stop=stop) as context:
            yield context


@contextlib.asynccontextmanager
async def _open_locked(
    search: ResolvedSearch,
    *,
    engine: Engine | None,
    on_event: OnEvent | None,
    stop: RunControl | None,
    writes_files: bool = False,
) -> AsyncIterator[SearchContext]:
    """Give the context of a search whose run folder this process holds."""
    from ridgeline.graph.search.compiled import end_compiled
    from ridgeline.graph.search.context import SearchContext, stored_target
    from ridgeline.tools.machine.load import cores_in_use
    from ridgeline.tools.remembering import RememberingEngine

    async with contextlib.AsyncExitStack() as stack:
        is_local = engine is None
        if engine is None:
            engine = await stack.enter_async_context(_local_engine(search, on_event, stop))
        archive = await asyncio.to_thread(Archive.open, search.run_dir / FILE_NAME, create=not search.resume)
        stack.callback(archive.close)
        wall_before_s = await asyncio.to_thread(begin, archive, search)
        context = SearchContext(
            problem=search.problem,
            target=search.target,
            described_target=await asyncio.to_thread(stored_target, archive, search.target),
            archive=archive,
            journal=Journal(archive),
            engine=RememberingEngine(engine, archive, target=search.target),
            models=ModelPool(search.models),
            settings=search.settings,
            budget=search.budget,
            bank=_open_bank(search, stack),
            rng_seed=search.rng_seed,
            wall_before_s=wall_before_s,
            devices=len(machine.measuring_devices(search.device, search.target.device)),
            writes_files=writes_files,
            cores_in_use=cores_in_use if is_local else None,
        )
        stack.push_async_callback(end_compiled, context)
        yield context


@contextlib.asynccontextmanager
async def _local_engine(
    search: ResolvedSearch, on_event: OnEvent | None, stop: RunControl | None
) -> AsyncIterator[Engine]:
    """Give the engine of this machine, after a warning when others keep the machine busy."""
    from ridgeline.tools.machine.load import busy_words

    opened = machine.open_engine(
        search.device,
        log=search.run_dir / "run.log",
        allow_unsafe=search.allow_unsafe,
        on_wait=_on_wait(on_event),
        is_stopping=lambda: stop is not None and stop.drain_requested,
    )
    async with opened as engine:
        if on_event is not None and (words := await asyncio.to_thread(busy_words, search.target.device)):
            on_event({"event": "warning", "message": words})
        yield engine


def _on_wait(on_event: OnEvent | None) -> Listener:
    def tell(wait: Wait | None) -> None:
        if on_event is not None:
            device, holder, is_news = (wait.device, wait.holder, wait.is_news) if wait else ("", "", False)
            holders = wait.holders if wait else 0
            on_event({"event": "waiting", "device": device, "holder": holder, "holders": holders, "is_news": is_news})

    return tell


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


# ------------------------------------------------------------------------------------------------------ what is driven


async def _drive(
    context: SearchContext,
    saver: AsyncSqliteSaver,
    search: ResolvedSearch,
    on_event: OnEvent | None,
    stop: RunControl | None,
) -> RunState:
    """Stream the graph and return the state it ended in; the wall time is stored however it ends."""
    from langgraph.errors import GraphDrained

    state = RunState.RUNNING  # of a search that a fault ends, or whose files are not written yet: it can be resumed
    try:
        return await _stream(context, saver, search, on_event, stop)
    except (GraphDrained, NotBegun):
        state = RunState.STOPPED
    except asyncio.CancelledError:
        state = RunState.STOPPED
        raise
    finally:
        wall_s = context.wall_before_s + time.monotonic() - context.started_s
        tier = _sandbox_tier(context.archive)
        context.archive.save_run(RunRecord(state=state, wall_s=wall_s, sandbox_tier=tier))
    return state


def _end(search: ResolvedSearch, archive: Archive, state: RunState) -> SearchResult:
    """Write the run's files, then store how the search ended: until they exist, it can be resumed."""
    result = write_result(search.run_dir, archive, state)
    archive.save_run(RunRecord(state=state))
    return result


def _sandbox_tier(archive: Archive) -> str | None:
    """Return the tier of isolation that the candidates ran in; None before one has run."""
    tiers = (e.verdict.sandbox_tier for e in archive.evaluations() if e.verdict is not None)
    return next((tier for tier in tiers if tier), None)


async def _stream(
    context: SearchContext,
    saver: AsyncSqliteSaver,
    search: ResolvedSearch,
    on_event: OnEvent | None,
    stop: RunControl | None,
) -> RunState:
    """Stream the graph to its end and return its outcome."""
    from ridgeline.graph.build import make_graph

    graph = make_graph()
    graph.checkpointer = saver
    with record_errors(search.run_dir / CHECKPOINTS):
        snapshot = await graph.aget_state(_THREAD)
        if snapshot.created_at is not None and not snapshot.next:
            outcome_of(snapshot.values)  # what a search that is over has to say
    if snapshot.created_at is None:
        given: dict[str, int] | None = {"max_rounds": search.max_rounds} if search.max_rounds else {}
    elif snapshot.next:
        given = None  # the graph goes on where it was; any input would begin it anew
    else:
        more = await extension(context, snapshot.values, search.max_rounds)
        if more.reason and on_event is not None:
            left = "nothing is left to do" if more.is_over else "only the certificate is left to do"
            on_event({"event": "warning", "message": f"{left}: {more.reason}"})
        if more.is_over:
            return RunState(outcome_of(snapshot.values))
        given = await begin_again(graph, _THREAD, search.run_dir, context.archive, more)
    async for part in _parts(graph, given, context, stop):
        if part["type"] == "custom":
            await _show(part["data"], context.archive, on_event)
        elif part["type"] == "updates" and not part["ns"] and "select" in part["data"]:
            await prune(saver, THREAD_ID)
    return RunState(outcome_of((await graph.aget_state(_THREAD)).values))


async def _show(event: SearchEvent, archive: Archive, on_event: OnEvent | None) -> None:
    """Store the reason for which a search ends, and hand its event on."""
    if event["event"] == "stopped":
        await asyncio.to_thread(archive.save_run, RunRecord(stop_reason=event["reason"]))
    if on_event is not None:
        on_event(event)


def _parts(graph: Any, given: dict[str, int] | None, context: SearchContext, stop: RunControl | None) -> Any:
    """Return the graph's stream of events and of node updates; each step is on disk before the next begins."""
    return graph.astream(
        given,
        _THREAD,
        context=context,
        stream_mode=["custom", "updates"],
        subgraphs=True,
        version="v2",
        durability="sync",
        control=stop,
    )
