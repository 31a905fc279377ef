"""A search in its run folder: the whole way, stopped, killed, resumed, extended."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pytest
from langgraph.runtime import RunControl
from tests.graph.conftest import write_problem
from tests.graph.loopback import Answer, Server, serve
from tests.graph.memory_engine import DESCRIPTION, MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.journal import Journal
from ridgeline.checkpoints.result import read_schema
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs import lock_run
from ridgeline.graph.offline import OfflineModel
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.problems.spec import Budget
from ridgeline.tools.engine import BaselineTask, BenchmarkTask, CompileTask, DescribeTask, Task, VerifyTask
from ridgeline.tools.errors import EngineError, ModelError, NotBegun, ProblemError, RunError
from ridgeline.tools.records.problem import Description
from ridgeline.tools.records.vocabulary import Origin, Status

SETTINGS: dict[str, Any] = {
    "rounds": 2,
    "ideas": 2,
    "implementations": 2,
    "tune_trials": 0,
    "stall_rounds": None,
    "floor_margin": None,
}


def options(tmp_path: Path, *, search: dict[str, Any] | None = None, **fields: Any) -> SearchRequest:
    problem = write_problem(tmp_path / "problem", search=SETTINGS | (search or {}))
    return SearchRequest(problem=problem, run_dir=tmp_path / "run", **fields)


async def test_finished_search_leaves_result_and_best_source(tmp_path: Path) -> None:
    result = await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    assert result.state == "finished"
    assert result.certified
    assert result.best_source_path is not None
    assert result.best_source_path.read_text() == result.best_source
    report = json.loads((tmp_path / "run" / "result.json").read_text())
    assert report["best"]["id"] == result.best_id
    assert report["best"]["speedup_vs_seed"] > 1
    described = read_schema("result")["properties"]["history"]["items"]["properties"]
    assert set(report["history"][0]) == set(described)


async def test_stopped_search_resumes_without_repeating_a_call_or_a_measurement(tmp_path: Path) -> None:
    engine, model = MemoryEngine(delay_s=0.01), ScriptedModel(delay_s=0.01)
    stop = RunControl()

    def on_event(event: Any) -> None:
        if event["event"] == "candidate_done" and event["candidate_id"].startswith("r1"):
            stop.request_drain("test")

    first = await run_search(options(tmp_path), engine=engine, models=[model], stop=stop, on_event=on_event)
    assert first.state == "stopped"
    second = await run_search(options(tmp_path, resume=True), engine=engine, models=[model])
    assert second.state == "finished"
    assert len(model.writes) == 8
    verified = {key: n for key, n in engine.counts.items() if key.startswith("VerifyTask:r")}
    assert max(n for key, n in verified.items() if second.best_id not in key) == 1


class _OneThatWaits(MemoryEngine):
    """A device that another process has once `at` measurements of a kind were made: only a stop ends the wait."""

    def __init__(self, stop: RunControl, kind: type[Task[Any]], at: int) -> None:
        super().__init__()
        self.stop, self.kind, self.at = stop, kind, at

    async def submit(self, task: Task[Any]) -> Any:
        is_one = isinstance(task, self.kind)
        if is_one and sum(n for name, n in self.counts.items() if name.startswith(self.kind.__name__)) >= self.at:
            self.stop.request_drain("test")
            raise NotBegun("a stop was asked for")
        return await super().submit(task)


@pytest.mark.parametrize(
    ("kind", "at"), [(DescribeTask, 0), (BaselineTask, 0), (CompileTask, 3), (VerifyTask, 2), (BenchmarkTask, 2)]
)
async def test_steps_that_a_stop_drops_are_taken_up_by_a_resumed_search(
    tmp_path: Path, kind: type[Task[Any]], at: int
) -> None:
    stop, model = RunControl(), ScriptedModel()
    waiting = _OneThatWaits(stop, kind, at)
    first = await run_search(options(tmp_path), engine=waiting, models=[model], stop=stop)
    assert (first.state, first.certified) == ("stopped", False)
    second = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[model])
    assert (second.state, second.certified) == ("finished", True)
    assert len(model.writes) == 8
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert {found.status for found in archive.evaluations()} == {Status.OK}


async def test_finished_search_is_extended_by_more_rounds(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    await run_search(options(tmp_path), engine=engine, models=[model])
    result = await run_search(options(tmp_path, resume=True, max_rounds=3), engine=engine, models=[model])
    assert (result.state, result.rounds) == ("finished", 3)
    assert len(model.writes) == 12


async def test_resuming_a_finished_search_changes_nothing(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    first = await run_search(options(tmp_path), engine=engine, models=[model])
    counts = Counter(engine.counts)
    second = await run_search(options(tmp_path, resume=True), engine=engine, models=[model])
    assert (second.state, second.best_id) == (first.state, first.best_id)
    assert engine.counts == counts


async def test_locked_folder_is_refused(tmp_path: Path) -> None:
    with lock_run(tmp_path / "run"), pytest.raises(RunError, match="in use"):
        await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])


async def test_folder_that_another_process_took_meanwhile_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(run_dir: Path) -> NoReturn:
        run_dir.mkdir()
        (run_dir / "archive.sqlite").write_text("another search's")
        raise RunError(f"{run_dir}: in use by process 4242")

    monkeypatch.setattr("ridgeline.graph.session.session.lock_run", taken)
    with pytest.raises(RunError, match="4242"):
        await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    assert (tmp_path / "run" / "archive.sqlite").read_text() == "another search's"


async def test_folder_with_a_search_is_refused_without_resume(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with pytest.raises(RunError, match="--resume"):
        await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])


async def test_changed_reference_is_refused_on_resume(tmp_path: Path) -> None:
    given = options(tmp_path)
    await run_search(given, engine=MemoryEngine(), models=[ScriptedModel()])
    reference = tmp_path / "problem" / "reference.py"
    reference.write_text(reference.read_text().replace("dim=-1", "dim=0"))
    resumed = SearchRequest(problem=given.problem, run_dir=given.run_dir, resume=True)
    with pytest.raises(RunError, match="changed"):
        await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])


async def test_run_of_another_problem_is_refused_with_both_names(tmp_path: Path) -> None:
    given = options(tmp_path)
    await run_search(given, engine=MemoryEngine(), models=[ScriptedModel()])
    other = write_problem(tmp_path / "other", name="other")
    (tmp_path / "other" / "reference.py").write_text("# another\n" + (tmp_path / "other" / "reference.py").read_text())
    resumed = SearchRequest(problem=other, run_dir=given.run_dir, resume=True)
    with pytest.raises(RunError, match=f"{given.run_dir}: a search of toy, not of other; .* give a run of other"):
        await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])


class RefusingEngine(MemoryEngine):
    """An engine for a reference that raises."""

    def _describe(self, _: Any) -> Any:
        raise ProblemError("reference.py: Model: forward raised ZeroDivisionError")


async def test_reference_that_raises_leaves_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="ZeroDivisionError"):
        await run_search(options(tmp_path), engine=RefusingEngine(), models=[ScriptedModel()])
    assert not (tmp_path / "run").exists()


async def test_refused_key_stops_the_search_which_can_be_resumed(tmp_path: Path) -> None:
    refuses = ScriptedModel(kernel=lambda r: ModelError("scripted: the key was refused (HTTP 401)"))
    with pytest.raises(ModelError, match="refused"):
        await run_search(options(tmp_path), engine=MemoryEngine(), models=[refuses])
    result = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert result.state == "finished"


CHILD = """
import asyncio, sys
from pathlib import Path
from ridgeline import SearchOptions, run_search
from ridgeline.graph.offline import OfflineModel
from ridgeline.graph.models.retry import RetryPolicy
from ridgeline.graph.models.registry import make_model
from ridgeline.problems.spec import load_problem
sys.path.insert(0, {tests!r})
from graph.memory_engine import MemoryEngine

folder, url, resume = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "resume"
problem = load_problem(folder / "problem" / "problem.yaml")
engine = MemoryEngine(delay_s=0.03, log=folder / "engine.log")
model = make_model("openai:loop@" + url + "/v1", policy=RetryPolicy(attempts=3, base_s=0.05))
options = SearchOptions(problem=problem, run_dir=folder / "run", resume=resume)
print(asyncio.run(run_search(options, engine=engine, models=[model])).state)
"""


def _reply(request: dict[str, Any]) -> str:
    """Answer a prompt: as many ideas as it asks for, or a kernel whose speed depends on the idea's words."""
    prompt = request["prompt"]
    if "Write one complete kernel" in prompt:
        title = prompt.split("## The idea\n\n**")[1].split("**")[0]
        return json.dumps({"source": f"// {title}\n// {len(prompt)}\n// speed 1.{30 + len(title) % 9}\n", "notes": ""})
    count = int(prompt.split("Propose ")[1].split()[0])
    round_ = prompt.split("This is round ")[1].split()[0]
    words = [f"{chr(97 + int(round_))}{chr(97 + n)}word" for n in range(count)]
    mechanisms = {w: f"{w}one {w}two {w}three" for w in words}
    ideas = [{"title": f"{w} {w}x", "mechanism": m, "category": "memory_access"} for w, m in mechanisms.items()]
    return json.dumps({"ideas": ideas})


def test_killed_search_resumes_with_no_reply_asked_twice_and_no_evaluation_run_twice(tmp_path: Path) -> None:
    write_problem(tmp_path / "problem", search=SETTINGS | {"rounds": 3})
    child = CHILD.format(tests=str(Path(__file__).parents[2]))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    arrived: dict[str, int] = {}
    judged: set[tuple[str, str]] = set()

    with serve(lambda n, request: Answer(_reply(request), delay_s=0.05)) as server:
        for kill, wanted in enumerate((4, 13)):
            command = [sys.executable, "-c", child, str(tmp_path), server.url, "resume" if kill else "new"]
            process = subprocess.Popen(command, env=environment)
            while len(server.requests) < wanted and process.poll() is None:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
            prompts, evaluations = _finished(tmp_path / "run")
            seen = _times_asked(server)
            arrived |= {prompt: seen[prompt] for prompt in prompts if prompt not in arrived}
            judged |= evaluations
        command[-1] = "resume"
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "finished"
    assert arrived and judged
    with Archive.open(tmp_path / "run", create=False) as archive:
        written = {c.id for c in archive.candidates(origin=Origin.MODEL)}
        totals = Journal(archive).totals()
    assert written == {f"r{r}i{i}v{v}a0" for r in (1, 2, 3) for i in (0, 1) for v in (0, 1)}
    assert totals["calls"] == 3 + 12, "three ideations and twelve kernels"
    assert {prompt: _times_asked(server)[prompt] for prompt in arrived} == arrived
    # at most what was in flight at the two kills is sent again: a round's four branches
    assert len(server.requests) - 15 <= totals["repeated"] <= 2 * 4
    lines = [json.loads(line) for line in (tmp_path / "engine.log").read_text().splitlines()]
    runs = Counter(
        (e["task"], e["candidate"]) for e in lines if e["purpose"] == "search" and e["task"] != "CompileTask"
    )
    assert {key: runs[key] for key in judged if runs[key] != 1} == {}


def _finished(run_dir: Path) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the prompts' hashes of calls that have their reply, and the measurements of finished evaluations."""
    with Archive.open(run_dir, create=False) as archive:
        prompts = {call["prompt_sha256"] for call in Journal(archive).calls("finished")}
        ids = [e.candidate_id for e in archive.evaluations() if e.candidate_id.startswith("r")]
    return prompts, {(task, candidate_id) for candidate_id in ids for task in ("VerifyTask", "BenchmarkTask")}


def _times_asked(server: Server) -> Counter[str]:
    """Return how often each prompt, by its hash, reached the server."""
    return Counter(hashlib.sha256(request["prompt"].encode()).hexdigest() for request in server.requests)


async def test_extension_to_fewer_rounds_than_are_done_asks_nothing(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    first = await run_search(options(tmp_path), engine=engine, models=[model])
    counts, calls, events = Counter(engine.counts), len(model.proposals), []
    result = await run_search(
        options(tmp_path, resume=True, max_rounds=1), engine=engine, models=[model], on_event=events.append
    )
    assert (result.state, result.rounds, result.best_id, result.certified) == ("finished", 2, first.best_id, True)
    assert (engine.counts, len(model.proposals)) == (counts, calls)
    assert [event["event"] for event in events] == ["warning"]


async def test_search_ended_by_its_budget_pays_nothing_more_until_the_budget_has_room(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    limited = options(tmp_path, search={"rounds": 3}, budget=Budget(usd=0.004))
    first = await run_search(limited, engine=engine, models=[model])
    assert (first.state, first.rounds) == ("budget", 1)
    calls = len(model.proposals) + len(model.writes)
    for more in ({}, {"max_rounds": 5}):  # the limit that it began with still holds
        again = await run_search(
            options(tmp_path, search={"rounds": 3}, resume=True, **more), engine=engine, models=[model]
        )
        assert (again.state, len(model.proposals) + len(model.writes)) == ("budget", calls)
    roomy = options(tmp_path, search={"rounds": 3}, resume=True, budget=Budget(usd=20))
    last = await run_search(roomy, engine=engine, models=[model])
    assert (last.state, last.rounds) == ("finished", 3)


async def test_branches_that_a_spent_budget_left_unwritten_come_first_when_there_is_room(tmp_path: Path) -> None:
    engine, model = MemoryEngine(), ScriptedModel()
    limited = options(tmp_path, search={"rounds": 1}, budget=Budget(usd=0.001))
    first = await run_search(limited, engine=engine, models=[model])
    assert (first.state, len(model.proposals), len(model.writes)) == ("budget", 1, 0)
    roomy = options(tmp_path, search={"rounds": 1}, resume=True, budget=Budget(usd=20))
    last = await run_search(roomy, engine=engine, models=[model])
    assert (last.state, last.rounds, len(model.proposals)) == ("finished", 1, 1)
    assert len({(w.idea.title, w.variation) for w in model.writes}) == SETTINGS["ideas"] * SETTINGS["implementations"]


class FailsToVerifyR1i0(MemoryEngine):
    """An engine that breaks at one idea's kernels."""

    def _verify(self, task: VerifyTask) -> Any:
        if task.candidate.id.startswith("r1i0"):
            raise EngineError("the judge died")
        return super()._verify(task)


def _back_to_schema_3(archive: Archive) -> None:
    """Store engine failures as schema 3 did: among the evaluations."""
    failures = archive.engine_failures()
    with archive.database.write() as rows:
        rows.execute("DROP TRIGGER evaluation_ends_failure")
        rows.execute("DROP TABLE engine_failures")
        for failure in failures:
            record = json.dumps(failure.as_evaluation().to_json())
            keys = {"candidate_id": failure.candidate_id, "purpose": failure.purpose.value}
            rows.table("evaluations").insert({**keys, "record": record})
        rows.execute("PRAGMA user_version = 3")


async def test_run_folder_of_an_older_schema_goes_on_and_judges_what_its_engine_failed_on(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=FailsToVerifyR1i0(), models=[ScriptedModel()])
    with Archive.open(tmp_path / "run", create=False) as archive:
        assert {f.candidate_id for f in archive.engine_failures()} == {"r1i0v0a0", "r1i0v1a0"}
        _back_to_schema_3(archive)
    resumed = options(tmp_path, resume=True, max_rounds=3)
    result = await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])
    assert (result.state, result.rounds, result.certified) == ("finished", 3, True)
    with Archive.open(tmp_path / "run", create=False) as archive:
        assert archive.engine_failures() == []
        for candidate_id in ("r1i0v0a0", "r1i0v1a0"):
            evaluation = archive.evaluation(candidate_id)
            assert evaluation is not None and evaluation.status is Status.OK


async def test_extended_search_has_no_certificate_until_it_is_certified_again(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    refuses = ScriptedModel(kernel=lambda r: ModelError("scripted: the key was refused (HTTP 401)"))
    with pytest.raises(ModelError):
        await run_search(options(tmp_path, resume=True, max_rounds=3), engine=MemoryEngine(), models=[refuses])
    with Archive.open(tmp_path / "run", create=False) as archive:
        assert archive.certificate() is None
        assert archive.run().best_id is None
    assert not (tmp_path / "run" / "certificate.json").exists()
    result = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert (result.certified, result.rounds) == (True, 3)


@pytest.mark.parametrize(("field", "value"), [("tolerance", "bf16"), ("call_timeout_s", 5.0), ("interface", "torch")])
async def test_changed_terms_of_the_problem_are_refused_on_resume(tmp_path: Path, field: str, value: Any) -> None:
    given = options(tmp_path)
    await run_search(given, engine=MemoryEngine(), models=[ScriptedModel()])
    changed = dataclasses.replace(given, problem=given.problem.model_copy(update={field: value}), resume=True)
    with pytest.raises(RunError, match=f"begun with {field} .* now says {value}"):
        await run_search(changed, engine=MemoryEngine(), models=[ScriptedModel()])


async def test_search_of_another_device_is_refused_on_resume(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with Archive.open(tmp_path / "run", create=False) as archive:
        archive.save_run(RunRecord(device=dataclasses.replace(archive.run().device, arch="another CPU")))
    with pytest.raises(RunError, match="begun on another CPU"):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])


async def test_resumed_search_keeps_its_device_whatever_is_passed(tmp_path: Path) -> None:
    first = await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    resumed = options(tmp_path, resume=True, device="cuda:99")
    assert (await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])).state == first.state


async def test_run_record_says_what_was_searched_and_with_what(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with Archive.open(tmp_path / "run", create=False) as archive:
        run = archive.run()
    assert "class Model" in (run.reference_source or "")
    assert run.strategy == "branch"
    assert run.sandbox_tier == "A"
    assert "g++" in run.versions["compiler"] or "GCC" in run.versions["compiler"]


class _Unexportable(MemoryEngine):
    """A machine on which torch cannot export the reference."""

    def _describe(self, _: DescribeTask) -> Description:
        return dataclasses.replace(DESCRIPTION, reference_graph=None)


async def test_reference_that_offline_does_not_cover_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    engine = _Unexportable()
    given = options(tmp_path)
    without_seeds = dataclasses.replace(given, problem=given.problem.model_copy(update={"seeds": []}))
    with pytest.raises(ModelError, match=r"(?i)not covered: .*two other ways on: .*--model openai:o3.*seeds:"):
        await run_search(without_seeds, engine=engine, models=[OfflineModel()])
    assert engine.counts == {"DescribeTask": 1}
    assert not (tmp_path / "run").exists()


async def test_seed_kernels_of_a_reference_that_offline_does_not_cover_are_judged_and_certified(tmp_path: Path) -> None:
    events: list[Any] = []
    result = await run_search(
        options(tmp_path), engine=_Unexportable(), models=[OfflineModel()], on_event=events.append
    )
    assert (result.state, result.certified) == ("stalled", True)
    assert any("nothing is composed" in event.get("message", "") for event in events)


async def test_offline_beside_another_model_may_meet_a_reference_that_it_does_not_cover(tmp_path: Path) -> None:
    result = await run_search(options(tmp_path), engine=_Unexportable(), models=[ScriptedModel(), OfflineModel()])
    assert (result.state, result.certified) == ("finished", True)
