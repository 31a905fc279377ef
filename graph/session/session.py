"""One search in its run folder: lock, archive, checkpoints, engine, the graph's stream, the result.

The command line and the library both come through here; nothing else opens a run folder to search in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.checkpoints.storage.saver import open_saver, prune
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.session import machine
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.beginning import begin, tell_unpriced
from ridgeline.graph.session.host_config import apart_from_host, checked_config
from ridgeline.graph.session.opening import is_stopping, local_engine, open_bank
from ridgeline.graph.session.outputs import SearchResult, write_result
from ridgeline.graph.session.parking import has_answers, on_requests, take_up
from ridgeline.graph.session.replaying import tell_replayed
from ridgeline.graph.session.resume import input_of
from ridgeline.graph.session.run_log import log_to
from ridgeline.graph.session.stopping import now_in_utc, obeying_stop
from ridgeline.graph.state import outcome_of
from ridgeline.tools.errors import InputError, NotBegun
from ridgeline.tools.records.vocabulary import RunState

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.runtime import RunControl

    from ridgeline.graph.models.pool import AnyModel
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.events import SearchEvent
    from ridgeline.graph.session.options import ResolvedSearch, SearchRequest
    from ridgeline.tools.engine import Engine

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
    models: Sequence[AnyModel] | None = None,
    config: RunnableConfig | None = None,
) -> SearchResult:
    """Run or resume a search to its end, or until `stop.request_drain()`; then it can be resumed exactly there.

    With `options.park` it ends too, in state `waiting`, where every branch waits for a mailbox or a batch.

    `engine` and `models` replace what the options would open; an engine that is passed in is not closed. `config` has
    callbacks, tags, metadata and a run name for LangGraph, which hands them on to every node and call of a model.

    Raises:
        InputError: invalid input; one line says how to fix it. Nothing was started, or the search can be resumed.
        EngineError: the machine failed; the search can be resumed.
    """
    checked("on_event", on_event)
    checked("stop", stop)
    config = checked_config(config)
    search = await asyncio.to_thread(options.resolve, models=models, is_local=engine is None)
    return await run_resolved(search, on_event=on_event, stop=stop, engine=engine, config=config)


async def run_resolved(
    search: ResolvedSearch,
    *,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
    engine: Engine | None = None,
    config: RunnableConfig | None = None,
) -> SearchResult:
    """Run a search as `run_search` does, once everything about it is decided.

    run.log is written under the folder's lock: the log of a search that holds the folder is that search's alone.
    """
    from langgraph.runtime import RunControl

    was_missing = not search.run_dir.exists()
    control = stop or RunControl()
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock_run(search.run_dir))
        since = now_in_utc()
        stack.enter_context(log_to(search.run_dir / "run.log"))
        # another process may have searched here since: only what begins under this lock is this search's to remove
        is_new = was_missing and not (search.run_dir / FILE_NAME).exists()
        context: SearchContext | None = None
        try:
            stack.enter_context(machine.users_reference(search.problem, search.target.device.kind.value))
            opened = _open_locked(
                search, engine=engine, on_event=on_event, stop=control, writes_files=True, interrupts=search.park
            )
            async with opened as context:
                obeying = obeying_stop(context.archive, control, since=since, on_event=on_event)
                async with open_saver(search.run_dir / CHECKPOINTS) as saver, obeying:
                    with apart_from_host(config or {}, _THREAD) as own:
                        state = await _drive(context, saver, search, on_event=on_event, stop=control, config=own)
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
    models: Sequence[AnyModel] | None = None,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
    interrupts: bool = True,
) -> AsyncIterator[SearchContext]:
    """Give the context of a search in its run folder, which is locked; everything opened is closed with the block.

    For a host that runs the graph itself, under its own checkpointer: `make_graph(GraphConfig(context=context))`.
    `run_search` does the same with a checkpointer in the run folder. `on_event` gets the engine's own event: another
    process has the device. Once `stop` is asked to drain, steps that wait for their turn are dropped: they raise
    NotBegun. A mailbox's request is LangGraph's interrupt; without `interrupts` the graph waits for the answer alive.

    Raises:
        InputError: as `run_search` does; a mistake leaves nothing half-written.
    """
    checked("on_event", on_event)
    search = await asyncio.to_thread(options.resolve, models=models, is_local=engine is None)
    opened = open_resolved(search, engine=engine, on_event=on_event, stop=stop, interrupts=interrupts)
    async with opened as context:
        yield context


@contextlib.asynccontextmanager
async def open_resolved(
    search: ResolvedSearch,
    *,
    engine: Engine | None = None,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
    interrupts: bool = True,
) -> AsyncIterator[SearchContext]:
    """Give the context as `open_context` does, once everything about the search is decided."""
    with lock_run(search.run_dir):
        opened = _open_locked(search, engine=engine, on_event=on_event, stop=stop, interrupts=interrupts)
        async with opened as context:
            yield context


@contextlib.asynccontextmanager
async def _open_locked(
    search: ResolvedSearch,
    *,
    engine: Engine | None,
    on_event: OnEvent | None,
    stop: RunControl | None,
    writes_files: bool = False,
    interrupts: bool,
) -> AsyncIterator[SearchContext]:
    """Give the context of a search whose run folder this process holds."""
    from ridgeline.graph.search.context import SearchContext, stored_target
    from ridgeline.graph.search.judging.compiled import end_compiled
    from ridgeline.tools.machine.load import cores_in_use
    from ridgeline.tools.remembering import RememberingEngine

    async with contextlib.AsyncExitStack() as stack:
        is_local = engine is None and not search.replays_times
        if engine is None and search.replay is not None and search.replays_times:
            engine = search.replay.engine(search.target)
        if engine is None:
            engine = await stack.enter_async_context(local_engine(search, on_event, stop))
        archive = await asyncio.to_thread(Archive.open, search.run_dir / FILE_NAME, create=not search.resume)
        stack.callback(archive.close)
        if search.replay is not None and not search.has_begun:
            await asyncio.to_thread(search.replay.hand_over, archive)
        wall_before_s = await asyncio.to_thread(begin, archive, search)
        context = SearchContext(
            problem=search.problem,
            target=search.target,
            described_target=await asyncio.to_thread(stored_target, archive, search.target),
            facts=(await asyncio.to_thread(archive.run)).facts or (),
            archive=archive,
            journal=Journal(archive),
            engine=RememberingEngine(engine, archive, target=search.target),
            models=ModelPool(search.models),
            settings=search.settings,
            budget=search.budget,
            bank=open_bank(search, stack),
            rng_seed=search.rng_seed,
            wall_before_s=wall_before_s,
            interrupts=interrupts,
            parks=search.park and writes_files,
            is_stopping=is_stopping(stop),
            tell_waiting=on_requests(search.run_dir, on_event),
            devices=len(machine.measuring_devices(search.device, search.target.device)) if is_local else 1,
            certifies=not search.replays_times,
            recorded=search.replay.answers if search.replay else None,
            writes_files=writes_files,
            cores_in_use=cores_in_use if is_local else None,
        )
        tell_unpriced(context.models, on_event)
        stack.push_async_callback(end_compiled, context)
        await asyncio.to_thread(context.later.mailbox.publish)
        yield context


# ------------------------------------------------------------------------------------------------------ what is driven


async def _drive(
    context: SearchContext,
    saver: AsyncSqliteSaver,
    search: ResolvedSearch,
    *,
    on_event: OnEvent | None,
    stop: RunControl | None,
    config: RunnableConfig,
) -> RunState:
    """Stream the graph and return the state it ended in; the wall time is stored however it ends."""
    from langgraph.errors import GraphDrained

    state = RunState.RUNNING  # of a search that a fault ends, or whose files are not written yet: it can be resumed
    try:
        return await _stream(context, saver, search, on_event=on_event, stop=stop, config=config)
    except (GraphDrained, NotBegun):
        state = RunState.STOPPED
    except asyncio.CancelledError:
        state = RunState.STOPPED
        raise
    finally:
        tier = _sandbox_tier(context.archive)
        replay = search.replay.to_json(context.archive) if search.replay else None
        context.archive.save_run(RunRecord(state=state, wall_s=context.wall_s, sandbox_tier=tier, replay=replay))
        tell_replayed(replay, on_event)
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
    *,
    on_event: OnEvent | None,
    stop: RunControl | None,
    config: RunnableConfig,
) -> RunState:
    """Stream the graph to its end and return its outcome, or that every branch waits for an answer."""
    from ridgeline.graph.build import make_graph

    graph = make_graph()
    graph.checkpointer = saver
    await take_up(context.later)
    with record_errors(search.run_dir / CHECKPOINTS):
        snapshot = await graph.aget_state(_THREAD)
        if snapshot.created_at is not None and not snapshot.next:
            outcome_of(snapshot.values)  # what a search that is over has to say
    given = await input_of(graph, _THREAD, snapshot, context, max_rounds=search.max_rounds, on_event=on_event)
    if isinstance(given, RunState):
        return given
    while True:
        async for part in _parts(graph, given, context, stop, config):
            if part["type"] == "custom":
                await _show(part["data"], context.archive, on_event)
            elif part["type"] == "updates" and not part["ns"] and "select" in part["data"]:
                await prune(saver, THREAD_ID)
        snapshot = await graph.aget_state(_THREAD)
        if not snapshot.interrupts:
            return RunState(outcome_of(snapshot.values))
        if not await has_answers(context, [asked.value["id"] for asked in snapshot.interrupts], on_event):
            return RunState.WAITING
        given = None


async def _show(event: SearchEvent, archive: Archive, on_event: OnEvent | None) -> None:
    """Store the reason for which a search ends, and hand its event on."""
    if event["event"] == "stopped":
        await asyncio.to_thread(archive.save_run, RunRecord(stop_reason=event["reason"]))
    if on_event is not None:
        on_event(event)


def _parts(
    graph: Any, given: dict[str, int] | None, context: SearchContext, stop: RunControl | None, config: RunnableConfig
) -> Any:
    """Return the graph's stream of events and of node updates; each step is on disk before the next begins."""
    return graph.astream(
        given,
        config,
        context=context,
        stream_mode=["custom", "updates"],
        subgraphs=True,
        version="v2",
        durability="sync",
        control=stop,
    )
