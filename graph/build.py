"""The graph, as the picture shows it.

```text
START → baseline → ideate ──Send × (ideas × implementations)──► implement (subgraph) ──► select ─┬─► tune ─┬─► ideate …
                                                                                                 └────────┴─► certify → END
implement: write → compile → verify → benchmark → (failed and repairs left? → write with the error) → done
           compile → (failed? → mend) → compile, where no model is needed
```

Where a mailbox's reply is pending, `ideate` and `write` are interrupted, and follow themselves once they have a value.
Where the search's device is on another machine, each node that needs it is interrupted until the search is resumed there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send

from ridgeline.graph.models.later_replies import ReplyPending
from ridgeline.graph.nodes.baseline import baseline
from ridgeline.graph.nodes.certify import certify
from ridgeline.graph.nodes.ideate import ideate
from ridgeline.graph.nodes.implement import benchmark, compile, verify, write  # noqa: A004  # a node's name
from ridgeline.graph.nodes.mend import mend
from ridgeline.graph.nodes.select import select
from ridgeline.graph.nodes.tune import tune
from ridgeline.graph.search.context import SearchContext
from ridgeline.graph.search.running.interrupts import put_to_host, wait_for_device
from ridgeline.graph.state import BranchOutput, BranchState, Route, SearchInput, SearchOutput, SearchState
from ridgeline.tools.errors import DeviceAway, ModelError
from ridgeline.tools.machine.threads import run_whole

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

RECURSION_LIMIT = 1_000_000
"""Supersteps. The search's own stop rules end a search; LangGraph's default would end a long one early."""

S = TypeVar("S", SearchState, BranchState)
Node = Callable[[S, SearchContext], Awaitable[S]]

NODES: dict[str, Node[SearchState]] = {
    "baseline": baseline,
    "ideate": ideate,
    "select": select,
    "tune": tune,
    "certify": certify,
}
BESIDE = ("baseline", "certify")
"""The nodes before the search looks for kernels and after it: a budget's limit on time does not count theirs."""
AGAIN: dict[str, dict[str, str]] = {"ideate": {"route": Route.IDEATE_AGAIN.value}, "write": {"stage": "write"}}
"""The update with which a node that asks models follows itself: LangGraph gives a host's value to one run of a node."""

BRANCH_NODES: dict[str, Node[BranchState]] = {
    "write": write,
    "compile": compile,
    "mend": mend,
    "verify": verify,
    "benchmark": benchmark,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphConfig:
    """The options of `make_graph`.

    With `context` the compiled graph can be a node of a host graph. Without it, pass `context=` to `ainvoke` or `astream`;
    the nodes refuse a host's own context object.
    """

    context: SearchContext | None = None


def make_graph(config: GraphConfig | None = None) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the compiled graph, without a checkpointer: a host's, or the one given at run time, is used."""
    config = config or GraphConfig()
    # its attributes may be set; what they hold is as for runs side by side, which change nothing of it
    return copy(_graph_of_any_context()) if config.context is None else _compiled(config)


@cache
def _graph_of_any_context() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the graph without a context of its own, compiled once: that takes as long as a search of scripted answers."""
    return _compiled(GraphConfig())


def _compiled(config: GraphConfig) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(
        SearchState, context_schema=SearchContext, input_schema=SearchInput, output_schema=SearchOutput
    )
    for name, node in NODES.items():
        builder.add_node(name, _bound(name, node, config), destinations=NEXT[name])
    builder.add_node("implement", _make_branch(config))
    builder.add_edge(START, "baseline")
    builder.add_edge("implement", "select")
    return builder.compile(name="ridgeline").with_config(recursion_limit=RECURSION_LIMIT)


def _make_branch(config: GraphConfig) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the subgraph of one branch; it inherits the parent's checkpointer, so it resumes inside."""
    builder = StateGraph(BranchState, context_schema=SearchContext, output_schema=BranchOutput)
    for name, node in BRANCH_NODES.items():
        builder.add_node(name, _bound(name, node, config), destinations=(*BRANCH_NODES, END))
    builder.add_edge(START, "write")
    return builder.compile(name="implement")


def _bound(name: str, node: Node[S], config: GraphConfig) -> Any:
    """Return `node` as LangGraph calls it, given the search's context, never a host's.

    What it returns names the next nodes too: LangGraph writes both at once. A node cut between its values and an edge that
    follows them is taken for one that has ended, and its graph ends there when it is resumed.
    """

    async def run(state: S, runtime: Runtime[SearchContext]) -> Command[Any]:
        context = config.context or runtime.context
        if not isinstance(context, SearchContext):
            raise ModelError("ridgeline graph: pass context=SearchContext(...) or make_graph(GraphConfig(context=...))")
        context.notes.keep_to_thread(thread_of(runtime), context.archive.path.parent)
        if context.go_on is not None:
            await run_whole(context.go_on)
        with context.working.node(finds=name not in BESIDE):
            try:
                return _then(name, state, await node(state, context))
            except ReplyPending as pending:
                context.working.interrupted()
                await put_to_host(context.later.mailbox, pending.request, _task_of(runtime))
                return _then(name, state, AGAIN[name])
            except DeviceAway as away:
                context.working.interrupted()
                wait_for_device(str(away))
                raise

    run.__name__ = run.__qualname__ = name
    return run


def _then(name: str, state: Mapping[str, Any], update: Mapping[str, Any]) -> Command[Any]:
    """Return a node's update of the state, and the nodes that follow in the state that it leaves."""
    left = {**state, **update}
    return Command(update=dict(update), goto=ROUTES[name](left) if name in ROUTES else _next_stage(left))


def _task_of(runtime: Runtime[SearchContext]) -> str:
    """Return the id of this run of a node, the same when it is run again after an interrupt."""
    info = runtime.execution_info
    return info.task_id if info is not None else ""


def thread_of(runtime: Runtime[Any]) -> str | None:
    """Return the id of the host's thread as a text, as which savers store it; None without a checkpointer."""
    info = runtime.execution_info
    return str(info.thread_id) if info is not None and info.thread_id is not None else None


def _after_baseline(state: Mapping[str, Any]) -> str:
    return "certify" if state.get("outcome") else "ideate"


def _fan_out(state: Mapping[str, Any]) -> str | list[Send]:
    if state.get("route") == Route.IDEATE_AGAIN:
        return "ideate"
    branches = state.get("branches", [])
    if state.get("outcome") or not branches:
        return "certify"
    return [Send("implement", {**branch, "round": state["round"], "attempt": 0}) for branch in branches]


def _route(state: Mapping[str, Any]) -> str:
    return str(state["route"])


def _next_stage(state: Mapping[str, Any]) -> str:
    stage = str(state["stage"])
    return END if stage == "done" else stage


NEXT = {
    "baseline": ("ideate", "certify"),
    "ideate": ("implement", "ideate", "certify"),
    "select": ("tune", "ideate", "certify"),
    "tune": ("ideate", "certify"),
    "certify": (END,),
}
"""The nodes that may follow each node, as a drawing shows them."""
ROUTES: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "baseline": _after_baseline,
    "ideate": _fan_out,
    "select": _route,
    "tune": _route,
    "certify": lambda _: END,
}
"""The nodes that follow each node, by the state that it leaves; a branch's nodes follow its stage."""
