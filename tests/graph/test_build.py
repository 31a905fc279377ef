"""The whole graph on real SQLite."""

from __future__ import annotations

import threading
import traceback
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from ridgeline.checkpoints.bank import Bank
from ridgeline.checkpoints.storage.database import Database
from ridgeline.graph.build import make_graph
from ridgeline.tools.records.vocabulary import Origin
from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel


async def test_search_runs_every_planned_branch_and_certifies_the_fastest(search: Search) -> None:
    output = await search.run(search.context())
    assert output["outcome"] == "finished"
    assert output["round"] == 2
    assert output["certified"]
    written = search.archive.candidates(origin=Origin.MODEL)
    assert {c.id for c in written} == {f"r{r}i{i}v{v}a0" for r in (1, 2) for i in (0, 1) for v in (0, 1)}
    certificate = search.archive.certificate_json()
    assert certificate is not None
    assert certificate["candidate"]["id"] == output["best_id"]


async def test_no_node_waits_for_the_database_in_the_event_loops_thread(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = {"source": "// tune: BLOCK = 1 | 2 | 4\n#define BLOCK 1\n// speed 2.0\n"}
    search.model = ScriptedModel(kernel=lambda request: kernel)
    context = search.context(rounds=2, tune_trials=3)
    loops_thread, seen = threading.get_ident(), []
    for name in ("query", "write"):
        used = getattr(Database, name)

        def recorded(*given: Any, used: Any = used, **named: Any) -> Any:
            seen.append(threading.get_ident() == loops_thread and "".join(traceback.format_stack(limit=6)))
            return used(*given, **named)

        monkeypatch.setattr(Database, name, recorded)
    with Bank.open(search.folder / "bank.sqlite") as bank:
        context.bank = bank
        output = await search.run(context)
    assert output["certified"] and search.events_named("tune")
    assert len(seen) > 100
    blocking = [stack for stack in seen if stack]
    assert blocking == [], blocking[0]


def test_a_nodes_values_and_what_follows_it_are_one_write() -> None:
    # a node that is cut between the two is taken for one that has ended, and its graph ends there when it is resumed
    graph = make_graph()
    branch: Any = graph.builder.nodes["implement"].runnable
    assert not graph.builder.branches and not branch.builder.branches
    drawn = {(edge.source, edge.target) for edge in graph.get_graph().edges}
    assert {("baseline", "certify"), ("ideate", "implement"), ("select", "tune"), ("certify", "__end__")} <= drawn


def test_a_graph_is_compiled_once_and_each_caller_has_attributes_of_its_own() -> None:
    one, other = make_graph(), make_graph()
    one.checkpointer, one.name = InMemorySaver(), "mine"
    assert other.checkpointer is None and other.name == "ridgeline"
    assert make_graph().checkpointer is None
    assert one.nodes is other.nodes
