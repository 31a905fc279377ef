"""A search in a host's node that is interrupted, drained, cancelled or killed goes on through the host's own saver."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command
from tests.graph.hosting.test_node import asked, host, thread
from tests.graph.memory_engine import MemoryEngine
from tests.graph.programs import ended, started
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_interrupts import answer_of
from tests.graph.session.test_session import _OneThatWaits as OneThatWaits

from ridgeline import open_run, search_node
from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.runs.folders import is_locked
from ridgeline.graph import cli
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.tools.engine import VerifyTask

pytestmark = pytest.mark.long

THREAD = thread("a")


async def test_a_mailboxs_request_interrupts_the_host_and_the_search_is_closed_until_it_is_answered(
    tmp_path: Path,
) -> None:
    engine, store = MemoryEngine(), str(tmp_path / "host.sqlite")
    put: Counter[str] = Counter()
    answers: dict[str, Any] = {}
    state: dict[str, Any] = {}
    for _ in range(8):  # each life is a process of its own, as far as the graph can tell
        node = search_node(asked(tmp_path, ideas=2), engine=engine, models=[LaterModel(name="mailbox")])
        async with AsyncSqliteSaver.from_conn_string(store) as saver:
            graph = host(node, saver)
            state = await graph.ainvoke(Command(resume=answers) if answers else {}, THREAD)
            requests = {each.id: each.value for each in (await graph.aget_state(THREAD)).interrupts}
        assert not is_locked(tmp_path / "runs" / "toy.a"), "the live part is closed"
        if not requests:
            break
        assert open_run(tmp_path / "runs" / "toy.a").state == "waiting"
        put.update(request["id"] for request in requests.values())
        answers = {id_: answer_of(request) for id_, request in list(requests.items())[:3]}
    assert (state["outcome"], state["certified"]) == ("finished", True)
    with Archive.open_read_only(tmp_path / "runs" / "toy.a") as archive:
        totals = Journal(archive).totals()
    assert (totals.calls, totals.repeated, totals.waiting) == (5, 0, 0)
    assert engine.counts["DescribeTask"] == 1
    searched = {k: n for k, n in engine.counts.items() if k.startswith(("VerifyTask:r", "BenchmarkTask:r"))}
    assert {n for k, n in searched.items() if state["best_id"] not in k} == {1}


@pytest.mark.parametrize("control", [RunControl(), None], ids=["drainable", "plain"])
async def test_ridgeline_stop_drains_the_host_which_goes_on_inside_the_search(
    tmp_path: Path, control: RunControl | None
) -> None:
    engine, model, saver = MemoryEngine(delay_s=0.05), ScriptedModel(delay_s=0.05), InMemorySaver()
    graph, run = host(search_node(asked(tmp_path), engine=engine, models=[model]), saver), tmp_path / "runs" / "toy.a"
    told: list[str] = []

    async def stopped() -> None:
        async for event in graph.astream({}, THREAD, stream_mode="custom", **({"control": control} if control else {})):
            told.append(event["event"])
            if event["event"] == "candidate_done" and told.count("candidate_done") == 1:
                assert cli.main(["stop", str(run)]) == 0

    with pytest.raises(GraphDrained, match="ridgeline stop"):
        await stopped()
    assert not is_locked(run) and open_run(run).state == "stopped"
    state = await graph.ainvoke(None, THREAD)
    assert (state["outcome"], state["certified"]) == ("finished", True)
    assert {n for k, n in engine.counts.items() if k.startswith("BenchmarkTask:r") and state["best_id"] not in k} == {1}


async def test_a_drained_host_goes_on_inside_the_search(tmp_path: Path) -> None:
    engine, model, saver = MemoryEngine(delay_s=0.01), ScriptedModel(delay_s=0.01), InMemorySaver()
    graph, control = host(search_node(asked(tmp_path), engine=engine, models=[model]), saver), RunControl()

    async def drained() -> None:
        async for event in graph.astream({}, THREAD, stream_mode="custom", control=control):
            if event["event"] == "candidate_done" and event["candidate_id"].startswith("r1"):
                control.request_drain("test")

    with pytest.raises(GraphDrained):
        await drained()
    assert open_run(tmp_path / "runs" / "toy.a").state == "stopped"
    state = await graph.ainvoke(None, THREAD)
    assert (state["outcome"], state["certified"]) == ("finished", True)
    assert len(model.writes) == 8
    assert engine.counts["DescribeTask"] == 1


@pytest.mark.parametrize("at", ["baseline", "round_started", "branch_stage", "candidate_done", "round_done", "certify"])
async def test_a_host_that_is_cancelled_at_any_event_goes_on_where_it_was(tmp_path: Path, at: str) -> None:
    model, saver = ScriptedModel(), InMemorySaver()

    async def run(given: Any, *, cancelled: bool) -> dict[str, Any]:
        graph = host(search_node(asked(tmp_path), engine=MemoryEngine(), models=[model]), saver)
        last: dict[str, Any] = {}
        async for mode, part in graph.astream(given, THREAD, stream_mode=["custom", "values"]):
            if mode == "custom" and part["event"] == at and cancelled:
                running.cancel()
            last = part if mode == "values" else last
        return last

    running = asyncio.ensure_future(run({}, cancelled=True))
    with pytest.raises(asyncio.CancelledError):
        await running
    assert open_run(tmp_path / "runs" / "toy.a").state == "stopped"
    state = await run(None, cancelled=False)
    assert (state["outcome"], state["round"], state["certified"]) == ("finished", 1, True)
    assert len(model.writes) == 8


CHILD = """
import asyncio, sys
from pathlib import Path
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from ridgeline import search_node
from tests.graph.hosting.test_node import host, thread
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

folder, given = Path(sys.argv[1]), {} if sys.argv[2] == "new" else None

class Model(ScriptedModel):
    async def write(self, request):
        with (folder / "writes.log").open("a") as log:
            log.write(f"{request.idea.title} {request.variation}\\n")
        return await super().write(request)

async def main():
    engine = MemoryEngine(delay_s=0.03, log=folder / "engine.log")
    asked = {"problem": str(folder / "problem"), "runs_dir": str(folder / "runs"), "rounds": 3}
    async with AsyncSqliteSaver.from_conn_string(str(folder / "host.sqlite")) as saver:
        graph = host(search_node(asked, engine=engine, models=[Model(delay_s=0.03)]), saver)
        state = await graph.ainvoke(given, thread("a"))
    print(state["outcome"], state["certified"])

asyncio.run(main())
"""


def test_a_killed_host_goes_on_through_its_own_saver_and_repeats_nothing(tmp_path: Path) -> None:
    asked(tmp_path)
    writes, run_dir = tmp_path / "writes.log", tmp_path / "runs" / "toy.a"
    judged: set[tuple[str, str]] = set()
    for life, wanted in enumerate((9, 19)):
        process = started(CHILD, tmp_path, "resume" if life else "new")
        while len(lines(writes)) < wanted and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        with Archive.open(run_dir, create=False) as archive:
            done = [e.candidate_id for e in archive.evaluations() if e.candidate_id.startswith("r")]
        judged |= {(task, candidate) for candidate in done for task in ("VerifyTask", "BenchmarkTask")}
    _, output, errors = ended(CHILD, tmp_path, "resume")
    assert output.split() == ["finished", "True"], errors
    assert judged
    run = open_run(run_dir)
    assert run.is_certified and (run_dir / "report.html").is_file() and (run_dir / "certificate.json").is_file()
    assert json.loads((run_dir / "result.json").read_text())["state"] == "finished"
    with Archive.open_read_only(run_dir) as archive:
        totals = Journal(archive).totals()
    assert totals.calls == 3 + 24, "three ideations and their kernels"
    # what was in flight at the two kills is asked again, at most a round's eight branches each time
    assert len(lines(writes)) - 24 <= totals.repeated <= 2 * 8
    measured = (json.loads(line) for line in lines(tmp_path / "engine.log"))
    runs = Counter((e["task"], e["candidate"]) for e in measured if e["purpose"] == "search")
    assert {key: runs[key] for key in judged if runs[key] != 1} == {}


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def test_a_step_that_waits_for_its_turn_is_dropped_by_a_drain_and_taken_up_later(tmp_path: Path) -> None:
    control, model, saver = RunControl(), ScriptedModel(), InMemorySaver()
    waiting = OneThatWaits(control, VerifyTask, 2)
    with pytest.raises(GraphDrained):
        await host(search_node(asked(tmp_path), engine=waiting, models=[model]), saver).ainvoke(
            {}, THREAD, control=control
        )
    graph = host(search_node(asked(tmp_path), engine=MemoryEngine(), models=[model]), saver)
    assert (await graph.ainvoke(None, THREAD))["outcome"] == "finished"
    assert len(model.writes) == 8


async def test_a_second_search_of_a_thread_that_has_one_is_refused(tmp_path: Path) -> None:
    graph = host(search_node(asked(tmp_path), engine=MemoryEngine(delay_s=0.05), models=[ScriptedModel()]))
    graph.checkpointer = InMemorySaver()
    first = asyncio.ensure_future(graph.ainvoke({}, THREAD))
    while not is_locked(tmp_path / "runs" / "toy.a"):
        await asyncio.sleep(0.01)
    second = await graph.ainvoke({}, THREAD)
    assert (second["outcome"], second["error"]["code"]) == ("refused", "RunError")
    assert "another search of this process uses it" in second["error"]["message"]
    assert (await first)["outcome"] == "finished"
