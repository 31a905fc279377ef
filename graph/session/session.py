"""One search in its run folder under a checkpointer of its own: the graph's stream, and the result.

The command line and the library come through here; a host's graph comes through opened_search.py, which this uses too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.checkpoints.storage.own_files import CHECKPOINTS
from ridgeline.checkpoints.storage.saver import open_saver, prune
from ridgeline.graph.search.events import ignore, viewer_of
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.host_config import apart_from_host, checked_config
from ridgeline.graph.session.opened_search import hold
from ridgeline.graph.session.parking import settle_waiting, take_up
from ridgeline.graph.session.resume import decide_continuation, prepare
from ridgeline.graph.state import outcome_of
from ridgeline.tools.errors import NotBegun
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.vocabulary import RunState

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.runtime import RunControl

    from ridgeline.graph.models.search_model import AnyModel
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.events import OnEvent
    from ridgeline.graph.session.last_record import SessionRecord
    from ridgeline.graph.session.options import ResolvedSearch, SearchRequest
    from ridgeline.graph.session.outputs import SearchResult
    from ridgeline.tools.engine import Engine

THREAD_ID = "search"
_THREAD: Any = {"configurable": {"thread_id": THREAD_ID}}


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

    With `options.park` it ends too, in state `waiting`, where every branch waits for a mailbox, a batch or, in a run that is
    resumed on a machine without its device, for that device.

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
    return await run_resolved(search, on_event=viewer_of(on_event), stop=stop, engine=engine, config=config)


async def run_resolved(
    search: ResolvedSearch,
    *,
    on_event: OnEvent = ignore,
    stop: RunControl | None = None,
    engine: Engine | None = None,
    config: RunnableConfig | None = None,
) -> SearchResult:
    """Run a search as `run_search` does, once everything about it is decided."""
    from langgraph.errors import GraphDrained
    from langgraph.runtime import RunControl

    control = stop or RunControl()
    held = hold(search, engine=engine, on_event=on_event, stop=control, interrupts=search.park)
    async with held as (context, record):
        async with open_saver(search.run_dir / CHECKPOINTS) as saver:
            with apart_from_host(config or {}, _THREAD) as own:
                try:
                    state = await _stream(context, record, saver, search, on_event=on_event, stop=control, config=own)
                except (GraphDrained, NotBegun):
                    state = RunState.STOPPED
        return await run_whole(record.end, state)


async def _stream(
    context: SearchContext,
    record: SessionRecord,
    saver: AsyncSqliteSaver,
    search: ResolvedSearch,
    *,
    on_event: OnEvent,
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
        if snapshot.created_at is not None and not snapshot.tasks:
            outcome_of(snapshot.values)  # what a search that is over has to say
    continuation = await decide_continuation(snapshot, context, max_rounds=search.max_rounds)
    if continuation.remark is not None:
        on_event(continuation.remark)
    if continuation.stays is not None:
        return continuation.stays
    await run_whole(record.go_on)
    given = await prepare(graph, _THREAD, context.archive, continuation)
    while True:
        async for part in _parts(graph, given, context, stop, config):
            if part["type"] == "custom":
                on_event(part["data"])
            elif part["type"] == "updates" and not part["ns"] and "select" in part["data"]:
                await prune(saver, THREAD_ID)
        snapshot = await graph.aget_state(_THREAD)
        if not snapshot.interrupts:
            return RunState(outcome_of(snapshot.values))
        asked = [interrupt.value["id"] for interrupt in snapshot.interrupts if "id" in interrupt.value]
        if not await settle_waiting(context, asked, on_event):
            return RunState.WAITING
        given = None


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
