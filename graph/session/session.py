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
from ridgeline.checkpoints.journal import Journal
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs import check_graph_version, lock_run
from ridgeline.checkpoints.saver import open_saver, prune
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.session import machine
from ridgeline.graph.session.outputs import SearchResult, forget_winner, write_result
from ridgeline.graph.session.resume import extension, source_sha256
from ridgeline.tools.errors import DeviceError, InputError, NotBegun, RunError, StorageError

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.runtime import RunControl

    from ridgeline.checkpoints.bank import Bank
    from ridgeline.graph.models.requests import KernelModel
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.events import SearchEvent
    from ridgeline.graph.session.options import ResolvedSearch, SearchRequest
    from ridgeline.tools.engine import Engine
    from ridgeline.tools.machine.waits import Listener, Wait
    from ridgeline.tools.records.problem import Target

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
    search = await asyncio.to_thread(options.resolve, models=models, is_local=engine is None)
    return await run_resolved(search, on_event=on_event, stop=stop, engine=engine)


async def run_resolved(
    search: ResolvedSearch,
    *,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
    engine: Engine | None = None,
) -> SearchResult:
    """Run a search as `run_search` does, once everything about it is decided."""
    was_missing = not search.run_dir.exists()
    with lock_run(search.run_dir):
        # another process may have searched here since: only what begins under this lock is this search's to remove
        is_new = was_missing and not (search.run_dir / FILE_NAME).exists()
        context: SearchContext | None = None
        try:
            async with _open_locked(search, engine=engine, on_event=on_event, stop=stop) as context:
                async with open_saver(search.run_dir / CHECKPOINTS) as saver:
                    state = await _drive(context, saver, search, on_event, stop)
                return await asyncio.to_thread(write_result, search.run_dir, context.archive, state)
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
    search: ResolvedSearch, *, engine: Engine | None, on_event: OnEvent | None, stop: RunControl | None
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
        wall_before_s = await asyncio.to_thread(_begin, archive, search)
        context = SearchContext(
            problem=search.problem,
            target=search.target,
            described_target=await asyncio.to_thread(stored_target, archive, search.target),
            archive=archive,
            journal=Journal(archive),
            engine=RememberingEngine(engine, archive),
            models=ModelPool(search.models),
            settings=search.settings,
            budget=search.budget,
            bank=_open_bank(search, stack),
            rng_seed=search.rng_seed,
            wall_before_s=wall_before_s,
            devices=len(machine.measuring_devices(search.device, search.target.device)),
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
    """Return the seed bank; None when the search has none, or when the user's own bank cannot be opened."""
    if search.bank is None:
        return None
    from ridgeline.checkpoints.bank import Bank
    from ridgeline.tools.machine.places import home_dir

    try:
        bank = Bank.open(search.bank)
    except StorageError as error:
        if search.bank != home_dir() / "bank.sqlite":
            raise
        logger.warning("going on without the seed bank: %s", error)
        return None
    stack.callback(bank.close)
    return bank


# ----------------------------------------------------------------------------------------------------- what is recorded


def _begin(archive: Archive, search: ResolvedSearch) -> float:
    """Store a new search, or that a resumed one goes on; return the seconds of its earlier sessions.

    Raises:
        RunError: the folder holds a search that the request did not mean, or one of another graph version.
    """
    from ridgeline.graph.build import GRAPH_VERSION

    check_graph_version(archive, GRAPH_VERSION)
    stored = archive.run()
    if not stored.has_begun:
        archive.save_run(_record(search))
        return 0.0
    if not search.has_begun:
        raise RunError(f"{search.run_dir}: holds a search already; pass --resume, or choose another --run-dir")
    archive.save_run(RunRecord(state="running", budget=search.budget.model_dump()))
    return stored.wall_s or 0.0


def _record(search: ResolvedSearch) -> RunRecord:
    """Return what a new search stores of itself."""
    return RunRecord(
        problem=search.problem.model_dump(mode="json"),
        problem_path=str(search.problem.path),
        device=search.target.device,
        device_name=search.device,
        settings=search.settings.model_dump(mode="json"),
        strategy=search.settings.strategy,
        budget=search.budget.model_dump(),
        versions=_versions(search.target),
        rng_seed=search.rng_seed,
        models=tuple(search.model_names),
        reference_source=search.target.reference_source,
        reference_source_sha256=source_sha256(search.target),
        state="running",
        started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        wall_s=0.0,
    )


def _versions(target: Target) -> dict[str, str]:
    """Return the compiler's version; none where an engine elsewhere compiles."""
    from ridgeline.tools.build.toolchain import find_toolchain

    with contextlib.suppress(DeviceError):  # an engine that compiles here says so itself
        return {"compiler": find_toolchain(target.device.kind).version}
    return {}


def _sandbox_tier(archive: Archive) -> str | None:
    """Return the tier of isolation that the candidates ran in; None before one has run."""
    tiers = (e.verdict.sandbox_tier for e in archive.evaluations() if e.verdict is not None)
    return next((tier for tier in tiers if tier), None)


# ------------------------------------------------------------------------------------------------------ what is driven


async def _drive(
    context: SearchContext,
    saver: AsyncSqliteSaver,
    search: ResolvedSearch,
    on_event: OnEvent | None,
    stop: RunControl | None,
) -> str:
    """Stream the graph; returns the state it ended in, which is stored with the wall time however it ends."""
    from langgraph.errors import GraphDrained

    state = "running"  # of a search that a fault ends: it can be resumed
    try:
        state = await _stream(context, saver, search, on_event, stop)
    except (GraphDrained, NotBegun):
        state = "stopped"
    except asyncio.CancelledError:
        state = "stopped"
        raise
    finally:
        wall_s = context.wall_before_s + time.monotonic() - context.started_s
        tier = _sandbox_tier(context.archive)
        context.archive.save_run(RunRecord(state=state, wall_s=wall_s, sandbox_tier=tier))
    return state


async def _stream(
    context: SearchContext,
    saver: AsyncSqliteSaver,
    search: ResolvedSearch,
    on_event: OnEvent | None,
    stop: RunControl | None,
) -> str:
    """Stream the graph to its end and return its outcome."""
    from ridgeline.graph.build import make_graph

    graph = make_graph()
    graph.checkpointer = saver
    snapshot = await graph.aget_state(_THREAD)
    if snapshot.created_at is None:
        given: dict[str, int] | None = {"max_rounds": search.max_rounds} if search.max_rounds else {}
    elif snapshot.next:
        given = None  # the graph goes on where it was; any input would begin it anew
    else:
        more = await extension(context, snapshot.values, search.max_rounds)
        if more.max_rounds is None:
            if more.reason and on_event is not None:
                on_event({"event": "warning", "message": f"nothing is left to do: {more.reason}"})
            return str(snapshot.values["outcome"])
        await asyncio.to_thread(forget_winner, search.run_dir, context.archive)
        given = {"max_rounds": more.max_rounds}
    async for part in _parts(graph, given, context, stop):
        if part["type"] == "custom" and on_event is not None:
            on_event(part["data"])
        elif part["type"] == "updates" and not part["ns"] and "select" in part["data"]:
            await prune(saver, THREAD_ID)
    return str((await graph.aget_state(_THREAD)).values["outcome"])


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
