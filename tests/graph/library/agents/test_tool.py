"""The tools of an agent: what comes back, awaited and blocking, and what becomes of mistakes and failures."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import RunControl
from tests.graph.library.agents.conftest import Bench
from tests.graph.scripted_agent import ScriptedAgent, tool_messages

from ridgeline import Budget, evaluate_tool, open_run, search_tool
from ridgeline.tools.errors import EngineError

GOOD = "// speed 2.0\nvoid run();\n"


def agent_of(bench: Bench, *calls: dict[str, Any], saver: Any = None, **options: Any) -> Any:
    tool = search_tool(runs_dir="runs", **options)
    return create_agent(ScriptedAgent(calls=[("search_kernel", call) for call in calls]), [tool], checkpointer=saver)


def ask(text: str = "make it faster") -> dict[str, Any]:
    return {"messages": [("user", text)]}


class Nodes(BaseCallbackHandler):
    def __init__(self) -> None:
        self.names: list[str] = []
        self.tags: set[str] = set()

    def on_chain_start(self, *_: Any, **told: Any) -> None:
        self.names.append(told.get("name", ""))
        self.tags |= set(told.get("tags") or ())


def check_answer(bench: Bench, message: ToolMessage) -> dict[str, Any]:
    answer = json.loads(str(message.content))
    assert message.status == "success" and answer["state"] == "finished"
    best = answer["best"]
    assert best["certified"] and best["speedup"] > 1.2 and len(best["speedup_ci95"]) == 2
    assert best["pytorch_ms"] / best["ms"] == pytest.approx(best["speedup"], rel=1e-3)
    idea = next(idea for idea in open_run(answer["run_dir"]).ideas if idea.title == best["idea"])
    assert best["how"] == idea.mechanism
    places = [answer[name] for name in ("run_dir", "report", "certificate")] + [best["source_path"]]
    assert all(Path(place).is_absolute() and Path(place).exists() for place in places)
    assert Path(answer["run_dir"]).parent == bench.runs
    assert message.artifact["result"] == json.loads((Path(answer["run_dir"]) / "result.json").read_text())
    exact = message.artifact["result"]["best"]["speedup"]
    assert best["speedup"] == float(f"{exact:.4g}")
    return answer


async def test_an_agent_that_is_awaited_gets_figures_paths_and_the_record(bench: Bench) -> None:
    state = await agent_of(bench, {"problem": bench.path}).ainvoke(ask())
    [message] = tool_messages(state)
    check_answer(bench, message)
    assert state["messages"][-1].content == "done"


def test_an_agent_that_blocks_gets_the_same(bench: Bench) -> None:
    agent = agent_of(bench, {"problem": bench.path, "rounds": 2, "show_source": True})
    [message] = tool_messages(agent.invoke(ask()))
    answer = check_answer(bench, message)
    assert answer["rounds"] == 2
    assert answer["best"]["source"] == Path(answer["best"]["source_path"]).read_text()
    assert not answer["best"]["source_is_cut"]


async def test_the_tool_blocks_inside_a_running_loop_too(bench: Bench) -> None:
    call = {"type": "tool_call", "id": "1", "name": "search_kernel", "args": {"problem": bench.path}}
    check_answer(bench, search_tool(runs_dir="runs").invoke(call))


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"problem": "sofmax"}, "problem sofmax: no such file, and none that ships; did you mean softmax?"),
    ({}, "problem: is missing; name one: the path of a problem.yaml, or a shipped one: attention_causal"),
    ({"problem": "softmax", "rounds": 0}, "rounds: must be greater than or equal to 1, got 0"),
    ({"problem": "softmax", "rounds": True}, "rounds: must be a number, got True"),
    ({"problem": "softmax", "rounds": "many"}, "rounds: must be a valid integer"),
    ({"problem": "softmax", "round": 1}, "round: unknown key; did you mean `rounds`?"),
    ({"problem": "softmax"}, "device 'tpu': unknown; use cpu, cuda or cuda:N"),
    ({"resume": "nothing"}, "nothing: no such run"),
    ({"problem": "soft\0max"}, "problem: must be a problem.yaml"),
    ({"resume": "a" * 5000}, "run: must be the folder, the name or the archive of a run"),
    ({"resume": "half of a pair: \ud800"}, "run: must be the folder, the name or the archive of a run"),
]


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_a_mistake_comes_back_in_one_line_and_the_agent_goes_on(bench: Bench, is_awaited: bool) -> None:
    agent = agent_of(bench, *(arguments for arguments, _ in MISTAKES), device="tpu")
    state = await agent.ainvoke(ask()) if is_awaited else agent.invoke(ask())
    for message, (_, said) in zip(tool_messages(state), MISTAKES, strict=True):
        assert message.status == "error" and "\n" not in message.content
        assert message.content.startswith(said), message.content
        assert message.content.encode(), "a provider takes no half of a pair of surrogates"
    assert state["messages"][-1].content == "done"
    assert not bench.runs.exists()


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_a_bare_text_comes_back_as_a_mistake(bench: Bench, is_awaited: bool) -> None:
    for tool in (search_tool(), evaluate_tool()):
        said = await tool.ainvoke("softmax") if is_awaited else tool.invoke("softmax")
        assert said.startswith(f"{tool.name}: got a bare text; give its arguments by name: ") and "problem" in said
    assert not bench.runs.exists()


async def test_a_failure_of_the_machine_comes_back_with_how_to_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = bench.engine.submit

    async def fail(task: Any) -> Any:
        if type(task).__name__ == "BaselineTask":
            raise EngineError("the judge died\nat once")
        return await submit(task)

    monkeypatch.setattr(bench.engine, "submit", fail)
    agent = agent_of(bench, {"problem": bench.path}, {"problem": bench.path})
    first, second = tool_messages(await agent.ainvoke(ask()))
    assert (first.status, second.status) == ("error", "error")
    assert first.content.startswith("the judge died at once; to go on: call search_kernel with resume=")
    run_dir = first.content.partition('resume="')[2].rstrip('"')
    monkeypatch.setattr(bench.engine, "submit", submit)
    [message] = tool_messages(await agent_of(bench, {"resume": run_dir}).ainvoke(ask()))
    assert json.loads(str(message.content))["run_dir"] == run_dir


async def test_events_reach_the_stream_of_the_host_and_its_function(bench: Bench) -> None:
    told: list[str] = []
    nodes = Nodes()
    agent = agent_of(bench, {"problem": bench.path}, on_event=lambda event: told.append(event["event"]))
    events = [event async for event in agent.astream(ask(), {"callbacks": [nodes]}, stream_mode="custom")]
    assert nodes.names.count("certify") == 1
    assert [event["event"] for event in events] == told
    assert {"baseline", "round_started", "candidate_done", "certify"} <= set(told)
    assert {Path(event["run_dir"]).parent for event in events} == {bench.runs}


def test_a_host_that_blocks_hears_events_and_its_callbacks_and_tags_reach_the_search_once(bench: Bench) -> None:
    nodes = Nodes()
    config = {"callbacks": [nodes], "tags": ["nightly"]}
    events = list(agent_of(bench, {"problem": bench.path}).stream(ask(), config, stream_mode="custom"))
    assert {"baseline", "round_started", "candidate_done"} <= {event["event"] for event in events}
    assert nodes.names.count("certify") == 1 and "nightly" in nodes.tags


async def test_two_calls_of_one_turn_are_two_searches(bench: Bench) -> None:
    tool = search_tool(runs_dir="runs")
    answers = await asyncio.gather(tool.ainvoke({"problem": bench.path}), tool.ainvoke({"problem": bench.path}))
    assert len({json.loads(answer)["run_dir"] for answer in answers}) == 2


async def test_two_calls_alike_of_one_task_are_two_searches(bench: Bench) -> None:
    call = {"name": "search_kernel", "args": {"problem": bench.path}, "type": "tool_call"}
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([search_tool(runs_dir="runs")]))  # both calls are one task of the graph
    builder.add_edge(START, "tools")
    asked = {"messages": [AIMessage("", tool_calls=[call | {"id": name} for name in ("a", "b")])]}
    found = tool_messages(await builder.compile().ainvoke(asked))  # type: ignore[arg-type]
    assert [message.status for message in found] == ["success"] * 2, [message.content for message in found]
    assert len({json.loads(str(message.content))["run_dir"] for message in found}) == 2


async def test_a_finished_search_of_the_hosts_own_folder_is_extended_with_more_rounds(bench: Bench) -> None:
    tool = search_tool(runs_dir="runs")
    first = json.loads(await tool.ainvoke({"problem": bench.path}))
    assert first["go_on"].startswith("For more rounds: call search_kernel with resume=")
    more = json.loads(await tool.ainvoke({"resume": first["run_dir"], "rounds": 2}))
    assert (more["run_dir"], more["rounds"]) == (first["run_dir"], 2)
    refused = await search_tool(runs_dir="elsewhere").ainvoke({"resume": first["run_dir"], "rounds": 3})
    assert refused == f"resume: {first['run_dir']} is not in {bench.folder / 'elsewhere'}; name a run that lies there"


async def test_a_spent_budget_is_told_with_what_the_host_has_to_do(bench: Bench) -> None:
    spent = search_tool(runs_dir="runs", budget=Budget(tokens=1), settings={"rounds": 3})
    answer = json.loads(await spent.ainvoke({"problem": bench.path}))
    assert answer["state"] == "budget"
    assert answer["go_on"].startswith("Its host raises the budget first, then: call search_kernel with resume=")
    richer = search_tool(runs_dir="runs", budget=Budget(tokens=10**6))
    assert json.loads(await richer.ainvoke({"resume": answer["run_dir"]}))["state"] == "finished"


async def test_a_kernel_that_is_not_certified_says_why(bench: Bench) -> None:
    bench.model._kernel = lambda _: {"source": "// speed 3.0 fails fresh secrets\nvoid run();\n", "notes": ""}
    (bench.folder / "problem" / "seeds" / "naive.cpp").write_text("// speed 0.5\n")
    answer = json.loads(await search_tool(runs_dir="runs").ainvoke({"problem": bench.path}))
    assert (answer["state"], answer["best"]["id"], answer["best"]["certified"]) == ("no_gain", "seed-naive", False)
    why = answer["best"]["why_not_certified"]
    assert why.startswith(
        "it is not faster than eager PyTorch; others that were tried: r1i0v0a0: re-verification: wrong"
    )
    bench.model._kernel = lambda _: {"source": "// speed 3.0 fails fresh secrets\nvoid run(int);\n", "notes": ""}
    (bench.folder / "problem" / "seeds" / "naive.cpp").write_text("// fails verify\n")
    answer = json.loads(await search_tool(runs_dir="others").ainvoke({"problem": bench.path}))
    assert answer["best"] is None and " is not certified: " in answer["why_none"]
    assert answer["why_none"].endswith("shifted (secret 2) differs")


async def test_a_host_that_drains_ends_the_search_which_goes_on_in_its_next_run(bench: Bench) -> None:
    control, config = RunControl(), {"configurable": {"thread_id": "1"}}

    def drain(event: Any) -> None:
        if event["event"] == "idea":
            control.request_drain("deploy")

    agent = agent_of(bench, {"problem": bench.path, "rounds": 3}, saver=InMemorySaver(), on_event=drain)
    with pytest.raises(GraphDrained):
        await agent.ainvoke(ask(), config, control=control)
    [message] = tool_messages((await agent.aget_state(config)).values)
    answer = json.loads(str(message.content))
    assert answer["state"] == "stopped"
    assert answer["best"]["why_not_certified"] == "the search ended before it was certified"
    assert "source" not in answer["best"]
    assert answer["go_on"].startswith("To go on: call search_kernel with resume=")


async def test_a_cancelled_call_says_so_and_its_task_goes_on_with_the_same_search(bench: Bench) -> None:
    began, config = asyncio.Event(), {"configurable": {"thread_id": "1"}}
    told: list[Any] = []

    def tell(event: Any) -> None:
        told.append(event)
        if event["event"] == "round_started" and event["round"] == 2:
            began.set()

    agent = agent_of(bench, {"problem": bench.path, "rounds": 3}, saver=InMemorySaver(), on_event=tell)
    running = asyncio.create_task(agent.ainvoke(ask(), config))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert "was cancelled; to go on: call search_kernel with resume=" in told[-1]["message"]
    [run_dir] = bench.runs.iterdir()
    assert open_run(run_dir).state == "stopped"
    proposals = len(bench.model.proposals)
    [message] = tool_messages(await agent.ainvoke(None, config))
    answer = json.loads(str(message.content))
    assert (answer["run_dir"], answer["state"], answer["rounds"]) == (str(run_dir), "finished", 3)
    assert len(bench.model.proposals) <= proposals + 2  # those of round 1 are not asked for again


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_an_agent_judges_its_own_kernel_in_one_call(bench: Bench, is_awaited: bool) -> None:
    tool = evaluate_tool(problems=[bench.problem])
    sources = (GOOD, GOOD.replace("speed", "fails verify, speed"), "one line", "// crashes VerifyTask\n//\n")
    agent = create_agent(ScriptedAgent(calls=[("evaluate_kernel", {"source": source}) for source in sources]), [tool])
    good, bad, line, crash = tool_messages(await agent.ainvoke(ask()) if is_awaited else agent.invoke(ask()))
    answer = json.loads(str(good.content))
    assert (answer["status"], answer["speedup"], answer["ms"], answer["pytorch_ms"]) == ("ok", 2.0, 5.0, 10.0)
    assert good.artifact["speedup"] == 2.0 and good.artifact["baselines"]
    wrong = json.loads(str(bad.content))
    assert (wrong["status"], wrong["reason"], bad.status) == ("wrong", "row 3 differs", "success")
    assert "speedup" not in wrong
    assert (line.status, line.content) == ("error", "source: must be a whole kernel with its line breaks, got one line")
    unjudged = json.loads(str(crash.content))
    assert (unjudged["status"], unjudged["reason_code"], crash.status) == ("refused", "engine_failed", "success")
    assert unjudged["reason"] == "the engine failed, the kernel may be sound: the judge died"


async def test_a_source_with_half_a_pair_of_surrogates_is_a_mistake(bench: Bench) -> None:
    said = await evaluate_tool().ainvoke({"problem": bench.path, "source": "// \ud83d\nvoid run();\n"})
    assert said == "kernels: a source holds half of a pair of unicode surrogates; give it whole characters"
