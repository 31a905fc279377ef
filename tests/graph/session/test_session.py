"""A search in its run folder: the whole way, stopped, refused, resumed."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from langgraph.runtime import RunControl
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import DESCRIPTION, MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.result import read_schema
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.graph.library.winner import load
from ridgeline.graph.mcp.runs import read_status
from ridgeline.graph.offline import OfflineModel
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_resolved, run_search
from ridgeline.graph.shipping.ship import ShipRequest, ship
from ridgeline.problems.spec import Budget
from ridgeline.tools.engine import BaselineTask, BenchmarkTask, CompileTask, DescribeTask, Task, VerifyTask
from ridgeline.tools.errors import ModelError, NotBegun, ProblemError, RunError, StorageError
from ridgeline.tools.records.problem import Description
from ridgeline.tools.records.vocabulary import Status

pytestmark = pytest.mark.long

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


async def test_search_without_a_certified_kernel_hands_over_the_fastest_right_one_labelled_so(tmp_path: Path) -> None:
    model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// speed 2\n// certified 1.0\n"})
    asked = options(tmp_path, search={"rounds": 1})
    (asked.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    result = await run_search(asked, engine=MemoryEngine(), models=[model])
    run = tmp_path / "run"
    assert (result.state, result.certified, result.speedup) == ("no_gain", False, 1.0)
    assert result.best_source is not None and (run / "best.cpp").read_text() == result.best_source
    assert json.loads((run / "result.json").read_text())["best"]["id"] == result.best_id
    assert "not certified: re-timing" in (run / "certificate.md").read_text()
    assert "re-timing" in result.uncertified[str(result.best_id)]
    with pytest.raises(RunError, match=rf"{result.best_id} is not certified \(re-timing: .*; uncertified=True ships"):
        ship(ShipRequest(run=run, out=tmp_path / "out"))
    with pytest.raises(RunError, match=f"its best kernel {result.best_id} is not certified"):
        load(run)
    again = await run_search(dataclasses.replace(asked, resume=True), engine=MemoryEngine(), models=[model])
    assert (again.best_id, again.certified) == (result.best_id, False)


async def test_a_limit_on_the_clock_says_first_what_comes_after_it_and_a_stop_bounds_that_too(tmp_path: Path) -> None:
    stop, events = RunControl(), list[Any]()

    def on_event(event: Any) -> None:
        events.append(event)
        if event["event"] == "certify":
            stop.request_drain("as long as the caller wants")

    asked = options(tmp_path, budget=Budget(wall_s=0.01))
    stopped = await run_search(asked, engine=MemoryEngine(), models=[ScriptedModel()], stop=stop, on_event=on_event)
    first = events[0]
    assert first["event"] == "note" and "wall_s (0.01 s) is for finding kernels" in first["message"]
    assert "--" not in first["message"] and "certificate" in first["message"]
    assert (stopped.state, stopped.certified) == ("stopped", False)
    more = options(tmp_path, resume=True)
    result = await run_search(more, engine=MemoryEngine(), models=[ScriptedModel()])
    assert (result.state, result.certified) == ("budget", True)
    assert "of the budget's wall_s are used" in result.reason
    unlimited: list[Any] = []
    other = dataclasses.replace(asked, run_dir=tmp_path / "other", budget=None)
    await run_search(other, engine=MemoryEngine(), models=[ScriptedModel()], on_event=unlimited.append)
    assert not [event for event in unlimited if event["event"] == "note"]


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


@pytest.mark.parametrize("at", ["baseline", "round_started", "candidate_done", "round_done", "certify"])
async def test_search_that_is_cut_at_any_event_goes_on_where_it_was(tmp_path: Path, at: str) -> None:
    model = ScriptedModel()

    def on_event(event: Any) -> None:
        if event["event"] == at:
            running.cancel()

    running = asyncio.ensure_future(
        run_search(options(tmp_path), engine=MemoryEngine(), models=[model], on_event=on_event)
    )
    with pytest.raises(asyncio.CancelledError):
        await running
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert archive.run().state == "stopped"
    resumed = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[model])
    assert (resumed.state, resumed.rounds, resumed.certified) == ("finished", 2, True)
    assert len(model.writes) == 8


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


async def test_locked_folder_is_refused(tmp_path: Path) -> None:
    with lock_run(tmp_path / "run"), pytest.raises(RunError, match="another search of this process uses it"):
        await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])


async def test_a_search_that_is_refused_its_folder_writes_nothing_into_its_log(tmp_path: Path) -> None:
    resolved = options(tmp_path).resolve(models=[ScriptedModel()], is_local=False)
    with lock_run(tmp_path / "run"):
        (tmp_path / "run" / "run.log").write_text("the holder's\n")
        with pytest.raises(RunError, match="another search of this process uses it"):
            await run_resolved(resolved, engine=MemoryEngine())
        assert (tmp_path / "run" / "run.log").read_text() == "the holder's\n"


async def test_folder_that_another_process_took_meanwhile_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(run_dir: Path) -> NoReturn:
        run_dir.mkdir()
        (run_dir / "archive.sqlite").write_text("another search's")
        raise RunError(f"{run_dir}: in use by process 4242")

    monkeypatch.setattr("ridgeline.graph.session.opened_search.lock_run", taken)
    with pytest.raises(RunError, match="4242"):
        await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    assert (tmp_path / "run" / "archive.sqlite").read_text() == "another search's"


async def test_folder_with_a_search_is_refused_without_resume(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with pytest.raises(RunError, match="resume=True"):
        await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])


class RefusingEngine(MemoryEngine):
    """An engine for a reference that raises."""

    def _describe(self, _: Any) -> Any:
        raise ProblemError("reference.py: Model: forward raised ZeroDivisionError")


async def test_reference_that_raises_leaves_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="ZeroDivisionError"):
        await run_search(options(tmp_path), engine=RefusingEngine(), models=[ScriptedModel()])
    assert not (tmp_path / "run").exists()


async def test_a_refused_search_leaves_no_folder_of_runs_that_it_made(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for was_there in (False, True):
        if was_there:
            runs.mkdir()
        asked = replace(options(tmp_path), run_dir=runs / "mine")
        with pytest.raises(ProblemError, match="ZeroDivisionError"):
            await run_search(asked, engine=RefusingEngine(), models=[ScriptedModel()])
        assert runs.exists() is was_there and not (runs / "mine").exists()


async def test_who_reads_a_refused_search_while_its_folder_is_removed_does_not_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_folder = os.rmdir

    def read_just_before(folder: Any, **options: Any) -> None:
        with contextlib.suppress(FileNotFoundError):
            (tmp_path / "run" / "archive.sqlite-shm").touch()  # as SQLite does, by the run's path
        remove_folder(folder, **options)

    monkeypatch.setattr(os, "rmdir", read_just_before)
    with pytest.raises(ProblemError, match="ZeroDivisionError"):
        await run_search(options(tmp_path), engine=RefusingEngine(), models=[ScriptedModel()])
    assert not (tmp_path / "run").exists()


async def test_refused_key_stops_the_search_which_can_be_resumed(tmp_path: Path) -> None:
    refuses = ScriptedModel(kernel=lambda r: ModelError("scripted: the key was refused (HTTP 401)"))
    with pytest.raises(ModelError, match="refused"):
        await run_search(options(tmp_path), engine=MemoryEngine(), models=[refuses])
    told = read_status(tmp_path / "run")
    assert (told.state, told.error) == ("interrupted", "scripted: the key was refused (HTTP 401)")
    result = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert (result.state, read_status(tmp_path / "run").error) == ("finished", None)


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
    with pytest.raises(ModelError, match=r"(?i)not covered: .*two other ways on: .*models='openai:o3'.*seeds:"):
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


@pytest.mark.parametrize("goes", [shutil.rmtree, lambda run: run.rename(run.with_name("moved"))])
async def test_a_search_whose_folder_goes_away_ends_at_its_next_store_and_makes_no_other(
    tmp_path: Path, goes: Callable[[Path], object]
) -> None:
    class Losing(MemoryEngine):
        async def submit(self, task: Task[Any]) -> Any:
            if isinstance(task, VerifyTask) and task.candidate.id == "r1i1v0a0":
                goes(tmp_path / "run")
            return await super().submit(task)

    engine = Losing()
    with pytest.raises(
        StorageError, match=r"archive\.sqlite: was removed, moved away or replaced while it was in use; put"
    ):
        await run_search(options(tmp_path), engine=engine, models=[ScriptedModel()])
    assert not (tmp_path / "run").exists()
    assert not [task for task in engine.counts if "r2" in task]
    if (moved := tmp_path / "moved").exists():
        moved.rename(tmp_path / "run")
        asked = dataclasses.replace(options(tmp_path), resume=True)
        assert (await run_search(asked, engine=MemoryEngine(), models=[ScriptedModel()])).state == "finished"
