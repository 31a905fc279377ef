"""A search in its run folder: the whole way, stopped, refused, resumed."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from langgraph.runtime import RunControl
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import DESCRIPTION, MemoryEngine
from tests.graph.scripted_model import ScriptedModel, own_structure

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.progress import progress
from ridgeline.checkpoints.result import read_schema
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.graph.library.winner import load
from ridgeline.graph.models.requests import KernelRequest
from ridgeline.graph.nodes import certify
from ridgeline.graph.offline import OfflineModel
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_resolved, run_search
from ridgeline.graph.shipping.ship import ShipRequest, ship
from ridgeline.problems.spec import Budget
from ridgeline.tools.engine import BaselineTask, BenchmarkTask, CompileTask, DescribeTask, Task, VerifyTask
from ridgeline.tools.errors import EngineError, ModelError, NotBegun, ProblemError, RunError, StorageError
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
    result = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert result.state == "finished"


class FailsToVerifyR1i0(MemoryEngine):
    """An engine that breaks at one idea's kernels."""

    def _verify(self, task: VerifyTask) -> Any:
        if task.candidate.id.startswith("r1i0"):
            raise EngineError("the judge died")
        return super()._verify(task)


def _back_to_schema_3(archive: Archive) -> None:
    """Store engine failures as schema 3 did, among the evaluations, and a skipped trial as one text."""
    failures = archive.engine_failures()
    with archive.database.write() as rows:
        rows.execute("DROP TRIGGER evaluation_ends_failure")
        rows.execute("DROP TABLE engine_failures")
        for failure in failures:
            record = json.dumps(failure.as_evaluation().to_json())
            keys = {"candidate_id": failure.candidate_id, "purpose": failure.purpose.value}
            rows.table("evaluations").insert({**keys, "record": record})
        rows.execute("UPDATE runs SET description = json_set(description, '$.skipped_trials[0]', 'shifted: outside')")
        rows.execute("DROP TRIGGER reply_ends_answers")
        for table in ("prompts", "answers", "steering"):
            rows.execute(f"DROP TABLE {table}")
        rows.execute("PRAGMA user_version = 3")


def faster_of_the_first_idea(first: float, other: float) -> Callable[[KernelRequest], dict[str, str]]:
    """Return what writes the kernels of a round, those of its first idea of one speed and all others of another."""

    def write(request: KernelRequest) -> dict[str, str]:
        speed = first if "1x0" in request.idea.title else other
        own = own_structure(request.idea.title, request.variation)
        return {"source": f"// speed {speed + 0.01 * request.variation}\n{own}"}

    return write


async def test_a_finished_search_that_is_resumed_judges_what_its_engine_failed_on(tmp_path: Path) -> None:
    model = ScriptedModel(kernel=faster_of_the_first_idea(1.5, 1.2))
    first = await run_search(options(tmp_path, search={"rounds": 1}), engine=FailsToVerifyR1i0(), models=[model])
    assert (first.state, first.certified, sorted(first.failed)) == ("finished", True, ["r1i0v0a0", "r1i0v1a0"])
    certificate = (tmp_path / "run" / "certificate.json").read_bytes()
    events: list[Any] = []
    resumed = options(tmp_path, search={"rounds": 1}, resume=True)
    still_fails = LooksForCertificate(tmp_path / "run")
    broken = await run_search(resumed, engine=still_fails, models=[model], on_event=events.append)
    left = "only 2 kernels that the machine failed on, and a certificate where one may win, left to do: no round was asked for"
    assert {"event": "note", "message": left} in events
    assert (broken.state, broken.best_id, broken.certified, broken.failed) == (
        *("finished", first.best_id, True),
        first.failed,
    )
    assert f"VerifyTask:{first.best_id}" not in still_fails.counts  # its certificate stands, there all the while
    assert (tmp_path / "run" / "certificate.json").read_bytes() == certificate
    assert still_fails.certified_meanwhile == [True, True]
    engine = MemoryEngine()
    second = await run_search(resumed, engine=engine, models=[model])
    assert (second.state, second.certified, second.failed) == ("finished", True, [])
    assert second.best_id in first.failed and second.best_id != first.best_id
    assert len(model.writes) == 4
    counts = dict(engine.counts)
    third = await run_search(resumed, engine=engine, models=[model])
    assert (third.best_id, engine.counts) == (second.best_id, counts)


class LooksForCertificate(FailsToVerifyR1i0):
    """An engine that looks, where it breaks, whether the search has its certificate."""

    def __init__(self, run: Path) -> None:
        super().__init__()
        self.run, self.certified_meanwhile = run, list[bool]()

    def _verify(self, task: VerifyTask) -> Any:
        with Archive.open_read_only(self.run) as archive:
            has_winner = archive.certificate() is not None and archive.run().best_id is not None
        self.certified_meanwhile.append(has_winner and (self.run / "certificate.json").exists())
        return super()._verify(task)


async def test_kernel_that_is_judged_just_before_a_resumed_search_is_killed_is_certified_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(kernel=faster_of_the_first_idea(1.5, 1.2))
    first = await run_search(options(tmp_path, search={"rounds": 1}), engine=FailsToVerifyR1i0(), models=[model])
    resumed = options(tmp_path, search={"rounds": 1}, resume=True)

    def killed(_archive: Archive) -> NoReturn:
        raise EngineError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(certify, "is_outdone", killed)
        with pytest.raises(EngineError, match="killed"):
            await run_search(resumed, engine=MemoryEngine(), models=[model])
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert (archive.run().best_id, archive.engine_failures()) == (first.best_id, [])
    second = await run_search(resumed, engine=MemoryEngine(), models=[model])
    assert (second.certified, second.best_id in first.failed) == (True, True)


@pytest.mark.parametrize(
    ("rules", "ended", "reason"),
    [
        ({"rounds": 3, "stall_rounds": 1}, "stalled", "no gain in 1 round"),
        ({"rounds": 2, "stall_rounds": None}, "finished", "2 rounds done"),
    ],
)
async def test_a_search_without_a_gain_that_has_one_later_ends_as_its_rounds_did(
    tmp_path: Path, rules: dict[str, Any], ended: str, reason: str
) -> None:
    model = ScriptedModel(kernel=faster_of_the_first_idea(1.5, 0.5))
    asked = options(tmp_path, search=rules)
    (asked.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")  # type: ignore[union-attr]
    first = await run_search(asked, engine=FailsToVerifyR1i0(), models=[model])
    assert (first.state, first.reason) == ("no_gain", "no certified kernel is faster than eager PyTorch")
    certifying: list[bool] = []

    def look(_event: Any) -> None:
        with Archive.open_read_only(tmp_path / "run") as archive:
            certifying.append(progress(archive).is_certifying)

    resumed = dataclasses.replace(asked, resume=True)
    second = await run_search(resumed, engine=MemoryEngine(), models=[model], on_event=look)
    assert (second.state, second.certified, second.reason) == (ended, True, reason)
    assert certifying and all(certifying)


async def test_kernel_that_is_judged_later_is_certified_also_behind_those_that_failed_at_their_certificates(
    tmp_path: Path,
) -> None:
    def write(request: KernelRequest) -> dict[str, str]:
        speed = "speed 1.5" if "1x0" in request.idea.title else "speed 2\n// certified 1.0"
        return {"source": f"// {speed}\n{own_structure(request.idea.title, request.variation)}"}

    model = ScriptedModel(kernel=write)
    asked = options(tmp_path, search={"rounds": 1})
    (asked.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")  # type: ignore[union-attr]
    first = await run_search(asked, engine=FailsToVerifyR1i0(), models=[model])
    assert (first.state, sorted(first.uncertified)) == ("no_gain", ["r1i1v0a0", "r1i1v1a0"])
    second = await run_search(dataclasses.replace(asked, resume=True), engine=MemoryEngine(), models=[model])
    assert (second.state, second.certified, second.best_id in first.failed) == ("finished", True, True)


async def test_a_search_without_a_gain_has_one_where_a_kernel_that_the_engine_failed_on_is_faster(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(kernel=faster_of_the_first_idea(1.5, 0.5))
    asked = options(tmp_path, search={"rounds": 1})
    (asked.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")  # type: ignore[union-attr]
    first = await run_search(asked, engine=FailsToVerifyR1i0(), models=[model])
    assert (first.state, first.certified) == ("no_gain", False)
    resumed = dataclasses.replace(asked, resume=True)
    again = await run_search(resumed, engine=FailsToVerifyR1i0(), models=[model])
    assert (again.state, again.reason) == ("no_gain", first.reason)
    second = await run_search(resumed, engine=MemoryEngine(), models=[model])
    assert (second.state, second.certified, second.reason) == ("finished", True, "1 round done")


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
        description = archive.description()
        assert description is not None and [t.name for t in description.skipped_trials] == ["shifted"]
        for candidate_id in ("r1i0v0a0", "r1i0v1a0"):
            evaluation = archive.evaluation(candidate_id)
            assert evaluation is not None and evaluation.status is Status.OK


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
