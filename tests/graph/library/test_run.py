"""A run as a program reads it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
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
from ridgeline.graph.library.run import ROW, Run, open_run
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import InputError, RunError

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
    with pytest.raises(TypeError):
        run.candidates[0].tunables["TILE"] = "8"  # type: ignore[index]


def test_rows_are_flat_have_every_column_and_are_json(run: Run) -> None:
    rows = run.rows()
    assert [tuple(row) for row in rows] == [ROW] * len(run.candidates)
    assert json.loads(json.dumps(rows)) == rows
    written = next(row for row in rows if row["origin"] == "model")
    assert written["status"] == "ok" and written["speedup_low"] <= written["speedup"] <= written["speedup_high"]
    assert written["idea"] in {idea.title for idea in run.ideas}


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


def test_an_exported_archive_opens_as_its_run_does(run: Run, folder: Path, tmp_path: Path) -> None:
    exported = export_archive(folder, tmp_path / "run.sqlite")
    assert open_run(str(exported)).rows() == run.rows()


def test_a_run_that_has_measured_nothing_yet_opens(tmp_path: Path) -> None:
    Archive.open(tmp_path / "archive.sqlite").close()
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
