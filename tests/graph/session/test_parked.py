"""A search that waits for answers: parked, killed, moved, answered in pieces; and alive, answered by another process."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import RunControl
from tests.graph.cli.command_line import ridgeline
from tests.graph.conftest import write_problem
from tests.graph.mailbox_agent import answer_of, drop_answers, requests_in
from tests.graph.memory_engine import MemoryEngine
from tests.graph.programs import started
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import SETTINGS, options
from tests.warm_python import WarmProgram

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.session.options import SearchRequest, _searched_problem
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import Origin

pytestmark = pytest.mark.long

STEPS = ("VerifyTask", "BenchmarkTask")
MAILBOX = LaterModel(name="mailbox")
CHILD = """
import asyncio, sys
from pathlib import Path
from ridgeline import SearchOptions, run_search
from ridgeline.graph.models.registry import make_model
from ridgeline.problems.spec import load_problem
from tests.graph.memory_engine import MemoryEngine

folder, run, resume, park = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "resume", sys.argv[4] == "park"
problem = load_problem(folder / "problem" / "problem.yaml")
engine = MemoryEngine(delay_s=0.03, log=folder / "engine.log")
options = SearchOptions(problem=problem, run_dir=run, resume=resume, park=park)
result = asyncio.run(run_search(options, engine=engine, models=[make_model("mailbox")]))
print(result.state, result.waiting)
"""


class Searcher:
    """Starts a search of one problem in processes of its own."""

    def __init__(self, folder: Path, **search: Any) -> None:
        self.folder, self.run = folder, folder / "run"
        self.judged: dict[tuple[str, str], int] = {}  # measurements of each candidate's steps once it was judged
        write_problem(folder / "problem", search=SETTINGS | search)

    def start(self, how: str = "park") -> WarmProgram:
        begun = "resume" if (self.run / "archive.sqlite").exists() else "new"
        return started(CHILD, self.folder, self.run, begun, how, stdout=subprocess.PIPE)

    def to_its_end(self, how: str = "park") -> str:
        out, _ = self.start(how).communicate(timeout=120)
        return out.strip()

    def killed_once(self, is_time: Callable[[], bool]) -> None:
        process = self.start()
        while process.poll() is None and not is_time():
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with Archive.open(self.run, create=False) as archive:
            ids = [e.candidate_id for e in archive.evaluations() if e.candidate_id.startswith("r")]
        if ids:
            counts = self.measured()
            keys = [(task, candidate_id) for candidate_id in ids for task in STEPS]
            self.judged |= {key: counts[key] for key in keys if key not in self.judged}

    def measured(self) -> Counter[tuple[str, str]]:
        """Return how often each step of each candidate of a model was measured for the search."""
        lines = [json.loads(line) for line in (self.folder / "engine.log").read_text().splitlines()]
        tasks = (e for e in lines if e["purpose"] == "search" and e["task"] in STEPS)
        return Counter((e["task"], e["candidate"]) for e in tasks if e["candidate"].startswith("r"))


@pytest.mark.thorough
def test_a_parked_search_of_32_requests_survives_kills_and_a_move_and_asks_and_measures_nothing_twice(
    tmp_path: Path,
) -> None:
    search = Searcher(tmp_path, rounds=1, ideas=16)
    assert search.to_its_end() == "waiting 1"
    assert drop_answers(search.run) == 1
    search.killed_once(lambda: len(requests_in(search.run)) >= 5)
    search.killed_once(lambda: len(requests_in(search.run)) >= 30)
    assert search.to_its_end() == "waiting 32"

    moved = tmp_path / "elsewhere" / "moved"
    shutil.copytree(search.run, moved)
    shutil.rmtree(search.run)
    search.run = moved
    assert drop_answers(moved, at_most=10) == 10
    search.killed_once(lambda: len(search.measured()) >= 7)
    assert search.to_its_end() == "waiting 22"
    assert drop_answers(moved) == 22
    search.killed_once(lambda: len(search.measured()) >= 35)
    assert search.to_its_end() == "finished 0"

    with Archive.open(moved, create=False) as archive:
        assert len(archive.candidates(origin=Origin.MODEL)) == 32
        assert all(archive.evaluation(c.id) is not None for c in archive.candidates(origin=Origin.MODEL))
        totals = Journal(archive).totals()
    assert (totals.calls, totals.repeated, totals.input_tokens) == (33, 0, 100)
    runs = search.measured()
    assert len(runs) == 2 * 32
    assert search.judged and {key: runs[key] for key in search.judged} == search.judged


def test_a_search_that_waits_alive_is_answered_by_other_processes(tmp_path: Path) -> None:
    search = Searcher(tmp_path, rounds=1, ideas=2, implementations=1)
    process = search.start("alive")
    for wanted in (1, 2):
        _until(lambda wanted=wanted: len(requests_in(search.run)) == wanted, process)
        for request in requests_in(search.run):
            suffix, text = answer_of(request.read_text())
            (tmp_path / f"mine.{suffix}").write_text(text)
            name = request.name.removesuffix(".request.md")
            done = ridgeline("mailbox", "answer", str(search.run), name, str(tmp_path / f"mine.{suffix}"))
            assert done.returncode == 0, done.stderr
    assert process.communicate(timeout=60)[0].strip() == "finished 0"


def _until(is_so: Callable[[], bool], process: WarmProgram) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.02)


async def test_a_stop_ends_a_search_that_waits_alive_and_its_wait_counts_for_no_budget(tmp_path: Path) -> None:
    stop, told = RunControl(), []

    def on_event(event: Any) -> None:
        if event["event"] == "mailbox":
            told.append(event["waiting"])
            asyncio.get_running_loop().call_later(4, stop.request_drain, "test")

    given, began = options(tmp_path), time.monotonic()
    result = await run_search(given, engine=MemoryEngine(), models=[MAILBOX], stop=stop, on_event=on_event)
    assert (result.state, result.waiting) == ("stopped", 1)
    assert told == [["r1:ideate:0"]]
    with Archive.open_read_only(tmp_path / "run") as archive:
        worked_s = archive.run().wall_s
    assert worked_s is not None and worked_s < time.monotonic() - began - 2


async def test_pytorchs_compiled_modes_are_timed_before_a_search_parks(tmp_path: Path) -> None:
    engine = MemoryEngine()
    result = await run_search(options(tmp_path, park=True), engine=engine, models=[MAILBOX])
    assert (result.state, result.waiting) == ("waiting", 1)
    with Archive.open_read_only(tmp_path / "run") as archive:
        baselines = archive.baselines()
        assert archive.run().state == "waiting"
    assert baselines is not None and not baselines.pending
    assert {entry.name for entry in baselines.entries} >= {ReferenceMode.EAGER, ReferenceMode.COMPILE}


async def test_a_model_that_answers_at_once_is_asked_once_beside_a_mailbox_that_parks(tmp_path: Path) -> None:
    model = ScriptedModel(delay_s=0.2)
    given = options(tmp_path, park=True, search={"rounds": 1})
    first = await run_search(given, engine=MemoryEngine(), models=[MAILBOX, model])
    assert (first.state, len(model.proposals)) == ("waiting", 1)
    again = options(tmp_path, park=True, resume=True, search={"rounds": 1})
    for waiting in range(1, 4):
        drop_answers(tmp_path / "run")
        result = await run_search(again, engine=MemoryEngine(), models=[MAILBOX, model])
        if result.state != "waiting":
            break
        assert result.waiting, waiting
    assert result.state == "finished"
    assert len(model.proposals) == 1
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert Journal(archive).totals().repeated == 0
        assert {c.model for c in archive.candidates(origin=Origin.MODEL)} == {"mailbox", "scripted"}


async def test_the_result_of_a_parked_search_says_that_it_waits(tmp_path: Path) -> None:
    result = await run_search(options(tmp_path, park=True), engine=MemoryEngine(), models=[MAILBOX])
    assert json.loads((tmp_path / "run" / "result.json").read_text())["state"] == "waiting"
    assert "waiting for answers" in (tmp_path / "run" / "report.html").read_text()
    assert result.best_id is not None and not result.certified


async def test_a_stop_ends_branches_that_wait_alive_and_they_wait_on_in_a_resumed_search(tmp_path: Path) -> None:
    stop = RunControl()

    def on_event(event: Any) -> None:
        if event["event"] == "mailbox" and len(event["waiting"]) == 4:
            stop.request_drain("test")
        drop_answers(tmp_path / "run", at_most=1 if event["event"] == "mailbox" and len(event["waiting"]) == 1 else 0)

    given = options(tmp_path, search={"rounds": 1})
    first = await run_search(given, engine=MemoryEngine(), models=[MAILBOX], stop=stop, on_event=on_event)
    assert (first.state, first.waiting) == ("stopped", 4)
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert archive.candidates(origin=Origin.MODEL) == []
    drop_answers(tmp_path / "run")
    again = options(tmp_path, resume=True, search={"rounds": 1})
    second = await run_search(again, engine=MemoryEngine(), models=[MAILBOX])
    assert (second.state, second.waiting) == ("finished", 0)


async def test_a_parked_run_whose_problem_is_not_here_says_what_to_name(tmp_path: Path) -> None:
    given = options(tmp_path, park=True)
    await run_search(given, engine=MemoryEngine(), models=[MAILBOX])
    shutil.move(tmp_path / "problem", tmp_path / "elsewhere")
    resumed = SearchRequest(run_dir=tmp_path / "run", resume=True, park=True)
    with pytest.raises(
        RunError, match=r"is not here; name the problem's file: search\('problem.yaml', resume=True, run_dir="
    ):
        await run_search(resumed, engine=MemoryEngine(), models=[MAILBOX])
    named = dataclasses.replace(resumed, problem=tmp_path / "elsewhere" / "problem.yaml")
    assert (await run_search(named, engine=MemoryEngine(), models=[MAILBOX])).state == "waiting"


def test_a_run_of_a_shipped_problem_finds_it_where_ridgeline_is_installed(tmp_path: Path) -> None:
    begun = RunRecord(
        problem_path="/gone/problems/quickstart/problem.yaml", problem={"name": "quickstart"}, settings={}
    )
    assert _searched_problem(tmp_path, begun).name == "quickstart"
