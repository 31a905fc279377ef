"""A search as a node of a host's graph: its files, its threads, its events, its errors."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline import (
    EngineError,
    GraphConfig,
    HostedSearch,
    RunError,
    SearchOptions,
    make_graph,
    make_hosted_graph,
    open_context,
    open_run,
    search_node,
)
from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.hosting.settings import LONGEST_THREAD, request_of

SETTINGS: dict[str, Any] = {"rounds": 1, "tune_trials": 0, "stall_rounds": None, "floor_margin": None}


class HostState(TypedDict, total=False):
    problem: str
    max_rounds: int
    outcome: str
    round: int
    run_dir: str
    best_id: str | None
    best_speedup: float | None
    best_speedup_ci95: list[float] | None
    best_source_path: str | None
    certificate_path: str | None
    report_path: str | None
    result_path: str | None
    certified: bool
    error: dict[str, str] | None


def asked(folder: Path, **given: Any) -> HostedSearch:
    write_problem(folder / "problem", search=SETTINGS)
    return {"problem": str(folder / "problem"), "runs_dir": str(folder / "runs"), **given}  # type: ignore[typeddict-item]


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def host(node: Any, saver: Any = None) -> Any:
    builder = StateGraph(HostState)
    builder.add_node("search", node)
    builder.add_edge(START, "search")
    builder.add_edge("search", END)
    return builder.compile(checkpointer=saver)


async def test_a_node_writes_the_files_of_its_run_and_names_them(tmp_path: Path) -> None:
    node = search_node(asked(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    state = await host(node, InMemorySaver()).ainvoke({}, thread("a"))
    assert (state["outcome"], state["round"], state["certified"], state["error"]) == ("finished", 1, True, None)
    assert_files(state, tmp_path / "runs" / "toy.a")
    low, high = state["best_speedup_ci95"]
    assert low <= state["best_speedup"] <= high
    assert json.loads(json.dumps(state)) == state


def assert_files(state: dict[str, Any], run_dir: Path) -> None:
    run = open_run(run_dir)
    assert state["run_dir"] == str(run_dir)
    assert run.is_certified and Path(state["best_source_path"]).read_text() == run.best_source
    assert json.loads(Path(state["result_path"]).read_text())["best"]["speedup"] == state["best_speedup"]
    assert all(Path(state[f"{name}_path"]).is_file() for name in ("certificate", "report"))


async def test_threads_of_one_compiled_host_have_searches_of_their_own(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    graph = host(search_node(asked(tmp_path), engine=engine, models=[model]), InMemorySaver())
    states = await asyncio.gather(*(graph.ainvoke({}, thread(name)) for name in ("a", "b/../c", "b/..-c")))
    assert {state["outcome"] for state in states} == {"finished"}
    assert len({state["run_dir"] for state in states}) == 3
    assert {Path(state["run_dir"]).parent for state in states} == {tmp_path / "runs"}
    assert len(model.writes) == 3 * 8, "each thread's search asked for its own kernels"


async def test_a_thread_that_runs_again_gives_what_it_found_and_more_rounds_extend_it(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    graph = host(search_node(asked(tmp_path), engine=engine, models=[model]), InMemorySaver())
    first = await graph.ainvoke({}, thread("a"))
    asked_for, measured = len(model.writes), sum(engine.counts.values())
    assert await graph.ainvoke({}, thread("a")) == first
    assert (len(model.writes), sum(engine.counts.values())) == (asked_for, measured)
    longer = await graph.ainvoke({"max_rounds": 2}, thread("a"))
    assert (longer["outcome"], longer["round"], longer["run_dir"]) == ("finished", 2, first["run_dir"])
    assert longer["best_speedup"] > first["best_speedup"] and longer["certified"]
    assert len(model.writes) == 2 * asked_for
    once = {k: n for k, n in engine.counts.items() if k.startswith(("VerifyTask:r1", "BenchmarkTask:r1"))}
    assert {n for k, n in once.items() if first["best_id"] not in k} == {1}, "round 1 is not measured again"


async def test_a_search_that_cannot_go_on_keeps_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = host(search_node(asked(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()]), InMemorySaver())
    first = await graph.ainvoke({}, thread("a"))
    (tmp_path / "cache").write_text("a file where the build cache would be\n")
    monkeypatch.setenv("RIDGELINE_CACHE_DIR", str(tmp_path / "cache"))
    here = host(search_node(asked(tmp_path), models=[ScriptedModel()]), InMemorySaver())
    refused = await here.ainvoke({"max_rounds": 2}, thread("a"))
    assert (refused["outcome"], refused["error"]["code"]) == ("refused", "StorageError")
    assert_files(first, tmp_path / "runs" / "toy.a")
    assert await graph.ainvoke({}, thread("a")) == first


async def test_a_winner_that_was_forgotten_by_a_kill_is_certified_again(tmp_path: Path) -> None:
    graph = host(search_node(asked(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()]), InMemorySaver())
    first = await graph.ainvoke({}, thread("a"))
    with Archive.open(tmp_path / "runs" / "toy.a" / "archive.sqlite") as archive:
        archive.forget_winner()  # what a search does that goes on, just before it says that it runs
    again = await graph.ainvoke({}, thread("a"))
    assert again["certified"] and again["best_id"] == first["best_id"]


async def test_events_reach_the_hosts_own_stream_once(tmp_path: Path) -> None:
    graph = host(search_node(asked(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()]), InMemorySaver())
    events = [event async for event in graph.astream({}, thread("a"), stream_mode="custom")]
    deep = [e async for _, e in graph.astream({}, thread("b"), stream_mode="custom", subgraphs=True)]
    assert {"baseline", "idea", "candidate_done", "certify", "stopped"} <= {event["event"] for event in events}
    assert sorted(e["event"] for e in events) == sorted(e["event"] for e in deep)


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"problem": "sofmax"}, "ProblemError", "did you mean softmax?"),
        ({"problem": None}, "ProblemError", "none was named"),
        ({"problm": "softmax"}, "InputError", "did you mean problem?"),
        ({"rounds": 0}, "ProblemError", "rounds"),
        ({"rounds": "many"}, "ProblemError", "rounds"),
        ({"budget": {"usd": -1}}, "ProblemError", "budget: usd"),
        ({"budget": 5}, "InputError", "budget must be a mapping"),
        ({"device": "tpu"}, "DeviceError", "tpu"),
        ({"models": 3}, "InputError", "models"),
        ({"runs_dir": 3}, "InputError", "runs_dir"),
        ({"search": []}, "InputError", "search must be a mapping"),
    ],
)
async def test_a_mistake_is_a_value_of_one_line_and_leaves_no_folder(
    tmp_path: Path, given: dict[str, Any], code: str, words: str
) -> None:
    node = search_node({**asked(tmp_path), **given}, engine=MemoryEngine(), models=[ScriptedModel()])  # type: ignore[typeddict-item]
    state = await host(node, InMemorySaver()).ainvoke({}, thread("a"))
    assert (state["outcome"], state["error"]["code"], state["run_dir"]) == ("refused", code, None)
    assert words in state["error"]["message"] and "\n" not in state["error"]["message"]
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())


async def test_a_hosts_own_context_is_no_search_and_max_rounds_are_checked(tmp_path: Path) -> None:
    node = search_node(engine=MemoryEngine(), models=[ScriptedModel()])
    state = await host(node).ainvoke({}, context=object())
    assert state["error"]["code"] == "InputError" and "HostedSearch" in state["error"]["message"]
    node = search_node(asked(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    state = await host(node).ainvoke({"max_rounds": 0})
    assert "max_rounds" in state["error"]["message"]


async def test_a_saver_or_a_call_that_blocks_is_refused_before_anything_begins(tmp_path: Path) -> None:
    node = search_node(asked(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with SqliteSaver.from_conn_string(":memory:") as saver:
        with pytest.raises(NotImplementedError, match="Consider using AsyncSqliteSaver"):
            await host(node, saver).ainvoke({}, thread("a"))
        with pytest.raises(TypeError, match=r"invoke via the async API \(ainvoke, astream, etc.\)"):
            host(node, saver).invoke({}, thread("a"))
    assert not (tmp_path / "runs").exists()


async def test_a_fault_of_the_machine_is_a_value_and_the_thread_goes_on_once_it_is_mended(tmp_path: Path) -> None:
    model = ScriptedModel()

    class Broken(MemoryEngine):
        async def submit(self, task: Any) -> Any:
            if sum(self.counts.values()) >= 8:
                raise EngineError("the judge died")
            return await super().submit(task)

    saver = InMemorySaver()
    failed = await host(search_node(asked(tmp_path), engine=Broken(), models=[model]), saver).ainvoke({}, thread("a"))
    assert (failed["outcome"], failed["error"]["code"]) == ("failed", "EngineError")
    assert open_run(failed["run_dir"]).state == "interrupted, resumable"
    mended = host(search_node(asked(tmp_path), engine=MemoryEngine(), models=[model]), saver)
    state = await mended.ainvoke({}, thread("a"))
    assert (state["outcome"], state["error"], state["run_dir"]) == ("finished", None, failed["run_dir"])
    assert len(model.writes) == 8, "replies that were paid for are not asked again"


async def test_the_runtime_context_states_the_search_of_a_hosted_graph(tmp_path: Path) -> None:
    graph = make_hosted_graph(engine=MemoryEngine(), models=[ScriptedModel()])
    empty = {"device": "", "strategy": "", "bank": ""}  # texts that nobody has put into the form
    state = await graph.ainvoke({}, context=asked(tmp_path, rounds=2, **empty))
    assert (state["outcome"], state["round"]) == ("finished", 2)
    again = await graph.ainvoke({}, context=asked(tmp_path))
    assert again["run_dir"] != state["run_dir"], "without a thread each search has a folder of its own"


async def test_a_hosts_state_may_name_the_problem(tmp_path: Path) -> None:
    stated = asked(tmp_path)
    problem = stated.pop("problem")
    graph = host(search_node(stated, engine=MemoryEngine(), models=[ScriptedModel()]), InMemorySaver())
    assert (await graph.ainvoke({"problem": problem}, thread("a")))["outcome"] == "finished"


async def test_a_context_that_a_host_opens_itself_writes_the_runs_files_and_is_of_one_thread(tmp_path: Path) -> None:
    options = SearchOptions(problem=asked(tmp_path)["problem"], run_dir=tmp_path / "run")
    async with open_context(options, engine=MemoryEngine(), models=[ScriptedModel()]) as context:
        graph = host(make_graph(GraphConfig(context=context)), InMemorySaver())
        state = await graph.ainvoke({}, thread("a"))
        written = json.loads((tmp_path / "run" / "result.json").read_text())
        with pytest.raises(RunError, match="is the search of thread a, not of b"):
            await graph.ainvoke({}, thread("b"))
    assert (written["state"], written["best"]["id"]) == (state["outcome"], state["best_id"])
    run = open_run(tmp_path / "run")
    assert run.is_certified and run.result["wall_s"] > 0
    assert (tmp_path / "run" / "best.cpp").read_text() == run.best_source
    assert all((tmp_path / "run" / name).is_file() for name in ("certificate.json", "report.html"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b-c"), ("a-b", "c")),
        (("a", "x/"), ("a", f"x-~{hashlib.sha256(b'x/').hexdigest()[:16]}")),
        (("a", "x/"), ("a", "x-")),
        (("a", "y" * LONGEST_THREAD + "1"), ("a", "y" * LONGEST_THREAD + "2")),
    ],
)
def test_no_two_threads_and_problems_share_a_folder(
    tmp_path: Path, one: tuple[str, str], other: tuple[str, str]
) -> None:
    folders = []
    for name, thread_id in (one, other):
        problem = write_problem(tmp_path / name, name=name)
        folders.append(request_of({"problem": str(problem.path), "runs_dir": str(tmp_path)}, thread_id).run_dir)
    assert folders[0] != folders[1]
    assert all(each.parent == tmp_path for each in folders if each)


@pytest.mark.parametrize("name", [5, 3.5, "\ud800"])
async def test_a_thread_whose_id_is_no_plain_text_has_a_folder_too(tmp_path: Path, name: Any) -> None:
    graph = host(search_node(asked(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()]), InMemorySaver())
    first = await graph.ainvoke({}, thread(name))
    assert (first["outcome"], first["error"]) == ("finished", None)
    assert Path(first["run_dir"]).parent == tmp_path / "runs"
    assert (await graph.ainvoke({}, thread(name)))["run_dir"] == first["run_dir"]


async def test_more_rounds_than_any_search_has_are_refused(tmp_path: Path) -> None:
    graph = host(search_node(asked(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()]))
    state = await graph.ainvoke({"max_rounds": 10**30})
    assert (
        state["outcome"] == "refused"
        and "max_rounds: must be a whole number from 1 to 1,000,000" in state["error"]["message"]
    )
