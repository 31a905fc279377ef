"""The host's graph: find the slowest module, have a kernel searched for it, report."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from tools import slowest

from ridgeline import HostedOutput


class HostState(HostedOutput, total=False):
    """The host's state: what the search reads and leaves, and keys of its own."""

    profile_ms: dict[str, float]
    problem: str
    report: str


def choose(state: HostState) -> HostState:
    """Pick what to make faster: the profile names shipped problems."""
    return {"problem": slowest(state["profile_ms"])}


def report(state: HostState) -> HostState:
    """Say how it went."""
    if error := state.get("error"):
        return {"report": f"{state['problem']}: {error['message']}"}
    speedup = state.get("best_speedup")
    gained = f"{speedup:.2f}x, {state['best_source_path']}" if speedup else "no kernel"
    return {"report": f"{state['problem']}: {state['outcome']}, {gained}"}


def build_host(search: Any, checkpointer: Any) -> Any:
    """Return the host's compiled graph with `search`, what `ridgeline.search_node` returns, as a node."""
    builder = StateGraph(HostState)
    builder.add_node("choose", choose)
    builder.add_node("search", search)
    builder.add_node("report", report)
    builder.add_edge(START, "choose")
    builder.add_edge("choose", "search")
    builder.add_edge("search", "report")
    builder.add_edge("report", END)
    return builder.compile(checkpointer=checkpointer)
