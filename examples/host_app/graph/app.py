"""The host's graph: find the slowest module, have a kernel searched for it, report."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from tools import slowest

from ridgeline.graph.build import GraphConfig, make_graph
from ridgeline.graph.search.context import SearchContext


class HostState(TypedDict, total=False):
    """The host's state; it shares `outcome`, `best_id` and `best_speedup` with the search by name."""

    profile_ms: dict[str, float]
    module: str
    max_rounds: int
    outcome: str
    best_id: str | None
    best_speedup: float | None
    report: str


def choose(state: HostState) -> HostState:
    """Pick what to make faster."""
    return {"module": slowest(state["profile_ms"]), "max_rounds": 1}


def report(state: HostState) -> HostState:
    """Say how it went."""
    speedup = state.get("best_speedup")
    gained = f"{speedup:.2f}x by {state.get('best_id')}" if speedup else "no kernel"
    return {"report": f"{state['module']}: {state['outcome']}, {gained}"}


def build_host(context: SearchContext, checkpointer: Any) -> Any:
    """Return the host's compiled graph with the search as its node `search`."""
    builder = StateGraph(HostState)
    builder.add_node("choose", choose)
    builder.add_node("search", make_graph(GraphConfig(context=context)))
    builder.add_node("report", report)
    builder.add_edge(START, "choose")
    builder.add_edge("choose", "search")
    builder.add_edge("search", "report")
    builder.add_edge("report", END)
    return builder.compile(checkpointer=checkpointer)
