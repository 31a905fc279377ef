"""A search as a sub-agent of deepagents, and as a node of a supervisor's graph."""

from __future__ import annotations

import json
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from tests.graph.library.agents.conftest import Bench
from tests.graph.scripted_agent import ScriptedAgent, tool_messages

from ridgeline import open_run, subagent
from ridgeline.graph.library.agents.answers import search_words


def ask(*texts: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text) for text in texts]}


def deep_agent(task: str, **options: Any) -> Any:
    call = ("task", {"description": task, "subagent_type": "kernel-search"})
    return create_deep_agent(ScriptedAgent(calls=[call]), subagents=[subagent(runs_dir="runs", **options)])


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_a_deep_agent_gets_the_figures_of_its_sub_agent(bench: Bench, is_awaited: bool) -> None:
    agent = deep_agent(f"Make the kernel of {bench.path} faster. rounds: 2")
    state = await agent.ainvoke(ask("go")) if is_awaited else agent.invoke(ask("go"))
    [message] = tool_messages(state)
    answer = json.loads(str(message.content))
    assert (answer["state"], answer["rounds"], answer["best"]["certified"]) == ("finished", 2, True)
    assert open_run(answer["run_dir"]).is_certified
    assert set(state) <= {"messages", "files", "todos"}


async def test_a_deep_agent_hears_what_the_sub_agent_needs(bench: Bench) -> None:
    [message] = tool_messages(await deep_agent("make my model faster").ainvoke(ask("go")))
    assert message.content.startswith("Which problem? The task names none. Write `problem: NAME`; NAME is the path of")
    assert "quickstart" in message.content
    [message] = tool_messages(await deep_agent("problem: sofmax").ainvoke(ask("go")))
    assert message.content.startswith("Nothing was found: problem sofmax: no such file, and none that ships; did you")


async def test_events_of_the_sub_agent_reach_the_stream_of_the_deep_agent(bench: Bench) -> None:
    stream = deep_agent(bench.path).astream(ask("go"), stream_mode="custom", subgraphs=True)
    events = {event["event"] async for _, event in stream}
    assert {"baseline", "round_started", "candidate_done", "certify"} <= events


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_the_runnable_returns_messages_and_the_structured_response_alone(bench: Bench, is_awaited: bool) -> None:
    runnable = subagent(runs_dir="runs", problems=[bench.problem])["runnable"]
    given = {**ask("do it"), "todos": ["x"]}
    state = await runnable.ainvoke(given) if is_awaited else runnable.invoke(given)
    assert set(state) == {"messages", "structured_response"}
    words, answer = state["messages"][-1], state["structured_response"]
    assert isinstance(words, AIMessage) and words.name == "kernel-search"
    assert words.text.startswith(f"toy: {answer['best']['speedup']:.2f}x (95 % ")
    assert "; certified." in words.text
    for place in (answer["best"]["source_path"], answer["report"], answer["certificate"]):
        assert place in words.text
    json.dumps(answer)


async def test_a_supervisors_graph_takes_the_runnable_as_a_node_and_the_last_task_counts(bench: Bench) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("kernels", subagent(runs_dir="runs")["runnable"])
    builder.add_edge(START, "kernels")
    host = builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    state = await host.ainvoke(ask("problem: sofmax", f"problem: {bench.path}"), config)
    assert state["messages"][-1].text.startswith("toy: ")
    state = await host.ainvoke(ask("and now?"), config)
    assert state["messages"][-1].text.startswith("Which problem?")
    assert len(state["messages"]) == 5


async def test_a_sub_agent_goes_on_with_a_run(bench: Bench) -> None:
    runnable = subagent(runs_dir="runs")["runnable"]
    first = (await runnable.ainvoke(ask(bench.path)))["structured_response"]
    assert (
        first["go_on"] == f"For more rounds: give the task `resume: {first['run_dir']}`, with a larger number of rounds"
    )
    more = (await runnable.ainvoke(ask(f"resume: {first['run_dir']}, rounds: 2")))["structured_response"]
    assert (more["run_dir"], more["rounds"]) == (first["run_dir"], 2)


def test_the_sub_agent_tells_what_it_understands() -> None:
    made = subagent(problems=["softmax"], name="kernels")
    assert set(made) == {"name", "description", "runnable"}
    assert made["name"] == "kernels" and made["description"].endswith("NAME is softmax.")


def test_a_sentence_of_a_kernel_without_figures_calls_them_not_measured() -> None:
    figures = {"speedup": None, "speedup_ci95": None, "ms": None, "pytorch_ms": None}
    best = figures | {"certified": True, "idea": "one pass", "how": "", "cautions": [], "source_path": "best.cpp"}
    ended = {"report": "report.html", "certificate": None, "ended": "finished", "go_on": "Done."}
    first = search_words({"problem": "softmax", "best": best, **ended}).splitlines()[0]
    assert first == "softmax: speedup over eager PyTorch not measured, time not measured; certified."
