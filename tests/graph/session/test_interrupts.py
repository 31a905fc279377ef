"""A search in a host's graph: each request of a mailbox is an interrupt, which the host answers when it likes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from tests.graph.mailbox_agent import drop_answers
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import options

from ridgeline import open_context
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.graph.build import GraphConfig, make_graph
from ridgeline.graph.models.mailbox.mailbox import Mailbox
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.search.context import SearchContext
from ridgeline.problems.spec import Budget

THREAD: Any = {"configurable": {"thread_id": "host"}}
ONE_ROUND: dict[str, Any] = {"rounds": 1}


class HostState(TypedDict, total=False):
    max_rounds: int
    outcome: str
    best_id: str | None


def host(context: SearchContext, saver: Any) -> Any:
    builder = StateGraph(HostState)
    builder.add_node("search", make_graph(GraphConfig(context=context)))
    builder.add_edge(START, "search")
    builder.add_edge("search", END)
    return builder.compile(checkpointer=saver)


def ideas(word: str, count: int = 2) -> str:
    found = [
        {"title": f"{word}{n} {word}{n}x", "mechanism": f"{word}{n}one {word}{n}two {word}{n}three"}
        for n in range(count)
    ]
    return json.dumps({"ideas": [idea | {"category": "memory_access"} for idea in found]})


def answer_of(request: dict[str, Any]) -> Any:
    """Return an answer to an interrupt's request; kernels as the object, ideas as text."""
    if request["purpose"] == "ideas":
        return ideas("alpha")
    number = sum(map(ord, request["id"]))
    return {"source": f"// {request['id']}\n// speed 1.{number % 89 + 10}\n", "notes": ""}


async def waiting_in(graph: Any) -> dict[str, dict[str, Any]]:
    """Return the requests that the graph is interrupted with, by the interrupts' ids."""
    return {asked.id: asked.value for asked in (await graph.aget_state(THREAD)).interrupts}


async def test_a_host_answers_several_requests_at_once_and_nothing_is_asked_or_measured_twice(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), LaterModel(name="mailbox")
    async with open_context(options(tmp_path, search=ONE_ROUND), engine=engine, models=[model]) as context:
        graph = host(context, InMemorySaver())
        await graph.ainvoke({"max_rounds": 1}, THREAD)
        put: Counter[str] = Counter()
        while requests := await waiting_in(graph):
            put.update(request["id"] for request in requests.values())
            some = list(requests.items())[:3]
            state = await graph.ainvoke(Command(resume={id_: answer_of(request) for id_, request in some}), THREAD)
        totals = context.journal.totals()
    assert state["outcome"] == "finished"
    assert (totals.calls, totals.repeated, totals.waiting) == (5, 0, 0)
    assert set(put) == {"r1:ideate:0", *(f"r1i{i}v{v}a0:write" for i in (0, 1) for v in (0, 1))}
    steps = {key: n for key, n in engine.counts.items() if key.startswith(("VerifyTask:r", "BenchmarkTask:r"))}
    searched = {key: n for key, n in steps.items() if state["best_id"] not in key}
    assert searched and set(searched.values()) == {1}


async def test_a_value_that_is_no_answer_is_refused_and_the_request_is_put_again_with_the_reason(
    tmp_path: Path,
) -> None:
    model = LaterModel(name="mailbox")
    async with open_context(options(tmp_path, search=ONE_ROUND), engine=MemoryEngine(), models=[model]) as context:
        graph = host(context, InMemorySaver())
        await graph.ainvoke({"max_rounds": 1}, THREAD)
        for value in ("no ideas at all", None, {"ideas": []}):
            ((id_, request),) = (await waiting_in(graph)).items()
            assert request["id"] == "r1:ideate:0"
            await graph.ainvoke(Command(resume={id_: value}), THREAD)
            ((_, again),) = (await waiting_in(graph)).items()
            assert again["refused"]
        ((id_, _),) = (await waiting_in(graph)).items()
        await graph.ainvoke(Command(resume={id_: ideas("alpha")}), THREAD)
        assert len(await waiting_in(graph)) == 4


async def test_a_late_value_is_not_taken_for_the_answer_to_another_request(tmp_path: Path) -> None:
    models = [LaterModel(name="mailbox:a"), LaterModel(name="mailbox:b")]
    async with open_context(options(tmp_path, search=ONE_ROUND), engine=MemoryEngine(), models=models) as context:
        graph = host(context, InMemorySaver())
        await graph.ainvoke({"max_rounds": 1}, THREAD)
        mailbox = Mailbox(Journal(context.archive))
        assert len(mailbox.waiting()) == 2, "both mailboxes are asked at once"
        ((id_, put),) = (await waiting_in(graph)).items()
        mailbox.answer(mailbox.find(put["id"]), ideas("first", 1).encode())
        await graph.ainvoke(Command(resume={id_: ideas("late", 1)}), THREAD)
        ((_, then),) = (await waiting_in(graph)).items()
        assert then["id"] != put["id"]
        assert context.journal.ids("waiting") == [then["id"]]


async def test_a_request_answered_by_a_file_is_found_when_the_host_goes_on_without_a_value(tmp_path: Path) -> None:
    model = LaterModel(name="mailbox")
    async with open_context(options(tmp_path, search=ONE_ROUND), engine=MemoryEngine(), models=[model]) as context:
        graph = host(context, InMemorySaver())
        await graph.ainvoke({"max_rounds": 1}, THREAD)
        mailbox = context.later.mailbox
        mailbox.answer(mailbox.find("r1:ideate:0"), ideas("alpha").encode())
        await graph.ainvoke(None, THREAD)
        assert len(await waiting_in(graph)) == 4


async def test_a_budget_that_allows_no_ideas_ends_a_search_whose_mailbox_was_asked_before(tmp_path: Path) -> None:
    given, saver = options(tmp_path, search=ONE_ROUND), InMemorySaver()
    async with open_context(given, engine=MemoryEngine(), models=[LaterModel(name="mailbox")]) as context:
        graph = host(context, saver)
        await graph.ainvoke({"max_rounds": 1}, THREAD)
        ((id_, _),) = (await waiting_in(graph)).items()
        await graph.ainvoke(Command(resume={id_: "no ideas at all"}), THREAD)
    resumed = options(tmp_path, search=ONE_ROUND, resume=True, budget=Budget(tokens=1))
    async with open_context(resumed, engine=MemoryEngine(), models=[ScriptedModel("other")]) as context:
        state = await asyncio.wait_for(host(context, saver).ainvoke(None, THREAD), 60)
    assert state["outcome"] == "budget"


async def test_interrupts_outlive_the_hosts_process_and_time_between_them_is_no_work(tmp_path: Path) -> None:
    model, engine = LaterModel(name="mailbox"), MemoryEngine()
    given = options(tmp_path, search=ONE_ROUND)
    store = str(tmp_path / "host.sqlite")
    opened = open_context(given, engine=engine, models=[model])
    async with AsyncSqliteSaver.from_conn_string(store) as saver, opened as context:
        graph = host(context, saver)
        await graph.ainvoke({"max_rounds": 1}, THREAD)
        ((id_, _),) = (await waiting_in(graph)).items()
        before_s = context.wall_s
        await asyncio.sleep(0.5)
        assert context.wall_s == pytest.approx(before_s, abs=0.1)
    resumed = options(tmp_path, search=ONE_ROUND, resume=True)
    opened = open_context(resumed, engine=engine, models=[model])
    async with AsyncSqliteSaver.from_conn_string(store) as saver, opened as context:
        graph = host(context, saver)
        await graph.ainvoke(Command(resume={id_: ideas("alpha")}), THREAD)
        requests = await waiting_in(graph)
        state = await graph.ainvoke(Command(resume={i: answer_of(r) for i, r in requests.items()}), THREAD)
    assert state["outcome"] == "finished"
    assert engine.counts["DescribeTask"] == 1


async def test_a_host_may_wait_alive_instead(tmp_path: Path) -> None:
    model = LaterModel(name="mailbox")
    opened = open_context(options(tmp_path, search=ONE_ROUND), engine=MemoryEngine(), models=[model], interrupts=False)
    async with opened as context:
        running = host(context, InMemorySaver())
        task = asyncio.ensure_future(running.ainvoke({"max_rounds": 1}, THREAD))
        while not task.done():
            drop_answers(tmp_path / "run")
            await asyncio.sleep(0.1)
    assert (await task)["outcome"] == "finished"
