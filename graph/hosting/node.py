"""A whole search as one node of a host's graph, and as a graph of that one node.

The live part of a search is opened when the node begins and closed when it ends, is interrupted or is cancelled. The search's
own graph runs inside the node: the host's checkpointer stores its steps, so that a killed host resumes inside its branches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from langgraph.errors import GraphBubbleUp, GraphDrained
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import RunControl, Runtime
from typing_extensions import TypedDict

from ridgeline.graph.build import RECURSION_LIMIT, make_graph, thread_of
from ridgeline.graph.certificate.validity import forget_winner
from ridgeline.graph.hosting.outcome import HostedOutput, output_of, refused_output
from ridgeline.graph.hosting.settings import HostedSearch, request_of
from ridgeline.graph.hosting.thread import is_over, result_of_ended
from ridgeline.graph.search.events import from_here, telling
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.last_record import left_by
from ridgeline.graph.session.opened_search import hold
from ridgeline.graph.state import outcome_of
from ridgeline.tools.errors import EngineError, InputError, NotBegun
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.vocabulary import RunState

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from ridgeline.graph.models.search_model import AnyModel
    from ridgeline.graph.session.options import SearchRequest
    from ridgeline.tools.engine import Engine

AT_ONCE = 1_000_000
"""LangGraph's `max_concurrency` within the search: below the number of branches, checkpoints would queue behind those
that have not begun. The engine bounds what runs."""


class HostedInput(TypedDict, total=False):
    """The keys of a host's state that the node reads."""

    problem: str | dict[str, Any]  # in the place of the HostedSearch's
    max_rounds: int  # on a search that is over: extend it to this many rounds


class SearchNode(Protocol):
    """A node of a host's graph."""

    async def __call__(self, state: HostedInput, *, runtime: Runtime[Any]) -> HostedOutput:
        """Search for a kernel, and return how it ended and where its files are."""
        ...


def search_node(
    search: HostedSearch | None = None, *, engine: Engine | None = None, models: Sequence[AnyModel] | None = None
) -> SearchNode:
    """Return a node that searches for a kernel, writes the run's files and returns HostedOutput.

    One thread and problem is one search, in a folder of its own: run again, it goes on, or gives what it found, and
    `max_rounds` extends it. An InputError or an EngineError is a value. Events go to the host's custom stream. A mailbox's
    request is an interrupt where the host has a checkpointer.

    Args:
        search: what to search for; None for the host's runtime context, which is a HostedSearch then.
        engine: in the place of this machine's; it is not closed.
        models: in the place of those that `search` names.

    Raises (the node):
        GraphDrained: the host's RunControl was asked to drain.
    """
    graph = make_graph()

    async def search_kernel(state: HostedInput, *, runtime: Runtime[Any]) -> HostedOutput:
        asked = runtime.context if search is None else search
        if state.get("problem") is not None and isinstance(asked, Mapping | None):
            asked = {**(asked or {}), "problem": state["problem"]}
        request: SearchRequest | None = None
        try:
            max_rounds = checked("max_rounds", state.get("max_rounds"))
            request = await asyncio.to_thread(request_of, asked, thread_of(runtime))
            return await _searched(graph, request, max_rounds, runtime, engine=engine, models=models)
        except (InputError, EngineError) as error:
            return await asyncio.to_thread(_refused, error, request)

    return search_kernel


def make_hosted_graph(
    search: HostedSearch | None = None, *, engine: Engine | None = None, models: Sequence[AnyModel] | None = None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return `search_node` as a graph, without a checkpointer; its arguments are the node's."""
    builder = StateGraph(_State, context_schema=HostedSearch, input_schema=HostedInput, output_schema=HostedOutput)
    builder.add_node("search", search_node(search, engine=engine, models=models))
    builder.add_edge(START, "search")
    builder.add_edge("search", END)
    return builder.compile(name="ridgeline")


class _State(HostedInput, HostedOutput, total=False):
    pass


async def _searched(
    graph: Any,
    request: SearchRequest,
    max_rounds: int | None,
    runtime: Runtime[Any],
    *,
    engine: Engine | None,
    models: Sequence[AnyModel] | None,
) -> HostedOutput:
    """Run or resume a thread's search to its end, its files included.

    Raises:
        GraphBubbleUp: the host's graph is interrupted or drained; the search is closed, and goes on when that does.
    """
    search = await asyncio.to_thread(request.resolve, models=models, is_local=engine is None)
    over = await run_whole(result_of_ended, search, max_rounds)
    if over is not None:
        return await asyncio.to_thread(output_of, over)
    tell, control = from_here(runtime.stream_writer), runtime.control or RunControl()
    pause: GraphBubbleUp
    interrupts = thread_of(runtime) is not None
    held = hold(search, engine=engine, on_event=tell, stop=control, interrupts=interrupts)
    async with held as (context, record):
        if is_over(search):  # before it runs: a kill in between leaves a search that is over and names no winner
            await run_whole(forget_winner, search.run_dir, context.archive)
        await run_whole(record.go_on)
        try:
            with telling(tell):
                values = await graph.ainvoke(
                    {"max_rounds": max_rounds} if max_rounds else {},
                    {"recursion_limit": RECURSION_LIMIT, "max_concurrency": AT_ONCE},
                    context=context,
                )
        except (GraphBubbleUp, NotBegun) as error:  # leaves the session as an end does: it is no error of it
            await run_whole(record.leave, left_by(error))
            pause = error if isinstance(error, GraphBubbleUp) else GraphDrained(control.drain_reason or "stopped")
        else:
            result = await run_whole(record.end, RunState(outcome_of(values)))
            return await asyncio.to_thread(output_of, result)
    raise pause


def _refused(error: InputError | EngineError, request: SearchRequest | None) -> HostedOutput:
    run_dir = request.run_dir if request is not None else None
    return refused_output(error, str(run_dir.absolute()) if run_dir is not None and run_dir.is_dir() else None)
