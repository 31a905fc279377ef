"""A run as a program reads it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.export import export_archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.graph.library import run as library_run
from ridgeline.graph.library.run import ROW, Run, _candidate, open_run
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.outputs import write_result
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import InputError, RunError
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, RunState

SETTINGS = {"rounds": 2, "ideas": 2, "implementations": 1, "tune_trials": 0, "stall_rounds": None, "floor_margin": None}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a finished search."""
    folder = tmp_path_factory.mktemp("searched")
    request = SearchRequest(problem=write_problem(folder / "problem", search=SETTINGS), run_dir=folder / "run")
    asyncio.run(run_search(request, engine=MemoryEngine(), models=[ScriptedModel()]))
    return folder / "run"


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return open_run(folder)


def test_a_run_has_its_rounds_ideas_and_candidates(run: Run, folder: Path) -> None:
    assert (run.path, run.problem, run.state, run.device) == (folder, "toy", "finished", "cpu")
    assert [(each.round, each.ideas, each.candidates) for each in run.rounds] == [(1, 2, 2), (2, 2, 2)]
    assert {idea.round for idea in run.ideas} == {1, 2} and {idea.author for idea in run.ideas} == {"scripted"}
    with Archive.open_read_only(folder) as archive:
        assert [c.id for c in run.candidates] == [c.id for c in archive.candidates()]
    assert {c.idea_id for c in run.candidates} - {None} == {idea.id for idea in run.ideas}
    assert all(c.source and c.evaluation and c.evaluation.is_ok for c in run.candidates)


def test_the_best_kernel_has_the_figures_of_the_result_and_its_certificate(run: Run, folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    assert run.result == result and run.certificate == json.loads((folder / "certificate.json").read_text())
    assert run.best is not None and run.best.evaluation is not None
    assert (run.best.id, run.best.evaluation.speedup) == (result["best"]["id"], result["best"]["speedup"])
    assert run.best_source == (folder / "best.cpp").read_text()
    assert run.is_certified


def test_nothing_of_a_run_can_be_changed(run: Run) -> None:
    run.result["best"]["speedup"] = 99.0
    run.certificate["passed"] = False  # type: ignore[index]
    assert run.result["best"]["speedup"] != 99.0 and run.is_certified
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.state = "mine"  # type: ignore[misc]
    tunables = run.candidates[0].tunables
    run.candidates[0].tunables["TILE"] = "8"
    assert run.candidates[0].tunables == tunables


def test_a_run_can_be_pickled_hashed_and_turned_into_plain_data(run: Run) -> None:
    again = pickle.loads(pickle.dumps(run))
    assert again == run and hash(again) == hash(run) and again.rows() == run.rows()
    assert {run: 1}[again] == 1
    told = dataclasses.asdict(run)
    assert [each["id"] for each in told["candidates"]] == [each.id for each in run.candidates]
    assert hash(run.candidates[0]) != hash(run.candidates[1])


def test_a_candidate_has_what_tuning_chose() -> None:
    candidate = Candidate(id="c", origin=Origin.TUNE, round=1, idea_id=None, parent_id="b", source="",
                          language="cpp",
                          tunables={"TILE": "8"})  # fmt: skip
    read = _candidate(candidate, None, None)
    assert read.tunables == {"TILE": "8"} and pickle.loads(pickle.dumps(read)).tunables == {"TILE": "8"}


def test_the_report_is_made_when_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("nobody asked")

    with monkeypatch.context() as patched:
        patched.setattr(library_run, "run_page", refuse)
        run = open_run(folder)
        assert run.best is not None and run.is_certified
    assert run.to_html() == (folder / "report.html").read_text()


def test_a_certificate_of_another_kernel_does_not_certify_the_best_one(run: Run) -> None:
    assert run.certificate is not None and run.is_certified
    other = run.certificate | {"candidate": {"id": "other"}}
    assert not dataclasses.replace(run, _certificate=other).is_certified


@pytest.mark.parametrize("is_others", [False, True])
def test_a_result_is_certified_by_its_best_kernels_certificate_alone(
    run: Run, folder: Path, tmp_path: Path, is_others: bool
) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert run.certificate is not None
    with Archive.open(copy / "archive.sqlite") as archive:
        if is_others:
            archive.save_certificate(run.certificate | {"candidate": {"id": "other"}})
        assert write_result(copy, archive, RunState.FINISHED).certified is not is_others


def test_rows_are_flat_have_every_column_and_are_json(run: Run) -> None:
    rows = run.rows()
    assert [tuple(row) for row in rows] == [ROW] * len(run.candidates)
    assert json.loads(json.dumps(rows)) == rows
    written = next(row for row in rows if row["origin"] == "model")
    assert written["status"] == "ok" and written["speedup_low"] <= written["speedup"] <= written["speedup_high"]
    assert written["idea"] in {idea.title for idea in run.ideas}


def test_a_row_tells_a_reason_in_the_words_that_evaluate_prints(run: Run) -> None:
    first, *others = run.candidates
    assert first.evaluation is not None
    judged = dataclasses.replace(first.evaluation, reason="nominal_0: values of out differ (error 0.5, gate 1e-05)")
    wrong = dataclasses.replace(run, candidates=(dataclasses.replace(first, evaluation=judged), *others))
    told = "inputs like those of get_inputs(): values of out differ (error 0.5, limit 1e-05)"
    assert wrong.rows()[0]["reason"] == told


def test_a_data_frame_is_made_of_the_rows(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class DataFrame:
        def __init__(self, rows: list[dict[str, Any]], columns: list[str]) -> None:
            self.rows, self.columns = rows, columns

    pandas = ModuleType("pandas")
    pandas.DataFrame = DataFrame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    frame = run.to_pandas()
    assert (frame.rows, frame.columns) == (run.rows(), list(ROW))


def test_without_pandas_one_line_says_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RunError, match=r"pandas is not installed; pip install pandas, or take rows\(\)"):
        run.to_pandas()


def test_a_notebook_shows_the_report_in_a_frame_that_runs_nothing(run: Run, folder: Path) -> None:
    assert run.to_html() == (folder / "report.html").read_text()
    shown = run._repr_html_()
    assert shown.startswith('<iframe sandbox="" srcdoc="') and shown.endswith("</iframe>")
    assert shown.count("<") == 2, "the page is text inside of the attribute"
    assert "toy, finished" in repr(run) and "x eager" in repr(run)


def test_a_notebook_is_told_in_a_line_that_a_run_is_gone(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "<copy>")
    run = open_run(copy)
    shutil.rmtree(copy)
    shown = run._repr_html_()
    assert "no such" in shown and "&lt;copy&gt;" in shown and "toy, finished" in shown and "iframe" not in shown
    with pytest.raises(RunError):
        run.to_html()


def test_the_page_says_what_goes_on_while_a_process_searches_alone(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    with Archive.open(copy / "archive.sqlite") as archive:
        archive.save_run(RunRecord(state=RunState.STOPPED))
    with lock_run(copy):
        assert "<h2>Now</h2>" in open_run(copy).to_html(), "it is being resumed"
    with Archive.open(copy / "archive.sqlite") as archive:
        archive.save_run(RunRecord(state=RunState.RUNNING))
    run = open_run(copy)
    assert run.state == "interrupted, resumable" and "<h2>Now</h2>" not in run.to_html()


def test_an_exported_archive_opens_as_its_run_does(run: Run, folder: Path, tmp_path: Path) -> None:
    exported = export_archive(folder, tmp_path / "run.sqlite")
    assert open_run(str(exported)).rows() == run.rows()


def test_a_run_that_has_measured_nothing_yet_opens(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        archive.save_run(RunRecord(state="running"))
    run = open_run(tmp_path)
    assert (run.candidates, run.best, run.best_source, run.certificate, run.rows()) == ((), None, None, None, [])
    assert "no kernel" in repr(run) and run._repr_html_()


@pytest.mark.parametrize("given", ["absent", 5, None, b"x", "a\0b", "x" * 9999])
def test_what_is_no_run_is_refused_in_one_line(given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        open_run(given)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database")
    with pytest.raises(InputError, match=r"notes\.txt"):
        open_run(tmp_path / "notes.txt")
