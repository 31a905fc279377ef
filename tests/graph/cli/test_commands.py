"""The commands that read, copy, merge and remove runs, as processes of their own on real run folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.candidates import candidate_of
from tests.graph.cli.command_line import assert_one_line, ridgeline

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.graph.cli.request import _changed_keys
from ridgeline.graph.library.run import open_run
from ridgeline.graph.state import GRAPH_VERSION
from ridgeline.problems.spec import parse_problem
from ridgeline.tools.records.vocabulary import Origin

pytestmark = pytest.mark.long

DAY_S = 86400.0


def _make_run(runs: Path, name: str, problem: str = "quickstart", days: float = 0.0) -> Path:
    run_dir = runs / name
    with lock_run(run_dir), Archive.open(run_dir / "archive.sqlite") as archive:
        archive.save_run(RunRecord(problem={"name": problem}, state="finished", search_id=f"id-{name}"))
        for n in range(2):
            source = f"// kernel {n} of {name}: \u00b5s\n"
            archive.add_candidate(candidate_of(source, name=f"r1i{n}v0a0", origin=Origin.MODEL, round=1))
    for file in run_dir.iterdir():
        os.utime(file, (time.time() - days * DAY_S,) * 2)
    return run_dir


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Give a folder `runs` with two finished runs of one problem and one of another."""
    for name, problem, days in (("q-1", "quickstart", 9), ("q-2", "quickstart", 2), ("s-1", "softmax", 30)):
        _make_run(tmp_path / "runs", name, problem, days)
    return tmp_path / "runs"


def _ridgeline(runs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ridgeline(*arguments, cwd=runs.parent, RIDGELINE_CACHE_DIR=str(runs.parent / "cache"))


def test_export_jsonl_without_out_prints_every_candidate(runs: Path) -> None:
    device = os.stat("/dev/stdout", follow_symlinks=False)
    done = _ridgeline(runs, "export", "q-1", "--jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["r1i0v0a0", "r1i1v0a0"]
    assert os.path.samestat(os.stat("/dev/stdout", follow_symlinks=False), device)


def test_export_jsonl_writes_a_file_and_says_how_many(runs: Path) -> None:
    done = _ridgeline(runs, "export", "q-1", "--jsonl", "--out", "data.jsonl")
    assert done.stdout == "wrote 2 candidates to data.jsonl\n"
    assert len((runs.parent / "data.jsonl").read_text().splitlines()) == 2


def test_export_to_a_name_that_ends_in_jsonl_writes_lines(runs: Path) -> None:
    done = _ridgeline(runs, "export", "q-1", "--out", "data.jsonl")
    assert done.stdout == "wrote 2 candidates to data.jsonl\n"
    assert json.loads((runs.parent / "data.jsonl").read_text().splitlines()[0])["id"] == "r1i0v0a0"


def test_export_refuses_to_replace_a_file_of_the_other_form(runs: Path) -> None:
    lines, database = runs.parent / "lines", runs.parent / "database"
    assert _ridgeline(runs, "export", "q-1", "--jsonl", "--out", "lines").returncode == 0
    assert _ridgeline(runs, "export", "q-1", "--out", "database").returncode == 0
    before = [file.read_bytes() for file in (lines, database)]
    refused = [
        _ridgeline(runs, "export", "q-2", "--out", "lines"),
        _ridgeline(runs, "export", "q-2", "--jsonl", "--out", "database"),
    ]
    assert [done.returncode for done in refused] == [2, 2]
    assert "lines: holds text, not a database" in refused[0].stderr
    assert "database: holds a database, not lines of JSON" in refused[1].stderr
    assert [file.read_bytes() for file in (lines, database)] == before
    assert _ridgeline(runs, "export", "q-2", "--out", "database").returncode == 0


@pytest.mark.parametrize("options", [["--jsonl"], []])
def test_export_into_a_pipe_is_refused_in_one_line(runs: Path, options: list[str]) -> None:
    os.mkfifo(runs.parent / "pipe")
    done = _ridgeline(runs, "export", "q-1", *options, "--out", "pipe")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pipe: is not a regular file" in done.stderr
    assert (runs.parent / "pipe").is_fifo()


def test_merge_says_what_came_in_and_nothing_the_second_time(runs: Path) -> None:
    sources = ["runs/q-1", "runs/s-1"]
    assert _ridgeline(runs, "merge", "all.sqlite", *sources).stdout == "all.sqlite: added 2 searches, 4 candidates\n"
    assert _ridgeline(runs, "merge", "all.sqlite", *sources).stdout == "all.sqlite: added nothing new\n"
    again = _ridgeline(runs, "merge", "all.sqlite", "runs/q-2", "runs/q-1")
    assert again.stdout == "all.sqlite: added 1 search, 2 candidates\n"


def test_a_merged_archive_is_shown_as_the_searches_in_it(runs: Path) -> None:
    _ridgeline(runs, "merge", "all.sqlite", "runs/q-1", "runs/s-1")
    done = _ridgeline(runs, "show", "all.sqlite")
    first, second, last = done.stdout.splitlines()
    assert first.startswith("id-q-1  quickstart: finished") and second.startswith("id-s-1  softmax: finished")
    assert first.count("; 2 kernels") == second.count("; 2 kernels") == 1
    assert last.startswith("a merged archive: show a run's own folder, or its export, for rounds, ideas and lineage")
    told = json.loads(_ridgeline(runs, "show", "all.sqlite", "--json").stdout)
    assert [(each["problem"], each["candidates"]) for each in told] == [("quickstart", 2), ("softmax", 2)]
    for words in (["--profile", "x"], ["--web"]):
        refused = _ridgeline(runs, "show", "all.sqlite", *words)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr


def test_an_exported_archive_is_shown_as_its_run(runs: Path) -> None:
    _ridgeline(runs, "export", "q-1", "--out", "mine.sqlite")
    own, copy = (_ridgeline(runs, "show", named).stdout for named in ("q-1", "mine.sqlite"))
    assert copy.splitlines()[0] == own.splitlines()[0].replace("(q-1)", "(mine.sqlite)")
    assert "ridgeline idea" not in copy


def test_a_path_of_bytes_that_are_no_text_is_written_and_shown(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:strict")
    into = os.fsdecode(b"\xff.sqlite")
    merged = _ridgeline(runs, "merge", into, "runs/q-1")
    assert (merged.returncode, merged.stdout) == (0, "\\udcff.sqlite: added 1 search, 2 candidates\n")
    assert (runs.parent / into).is_file()


@pytest.mark.parametrize("into", ["runs/q-1", "runs/q-1/archive.sqlite"])
def test_merge_into_a_run_is_refused_in_one_line(runs: Path, into: str) -> None:
    done = _ridgeline(runs, "merge", into, "runs/q-2")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "merge into another file" in done.stderr
    assert _ridgeline(runs, "show", "q-1").returncode == 0


def test_clean_keeps_the_newest_of_each_problem(runs: Path) -> None:
    done = _ridgeline(runs, "clean", "--keep", "1")
    assert done.returncode == 0, done.stderr
    assert sorted(f.name for f in runs.iterdir()) == ["q-2", "s-1"]


def test_clean_with_both_limits_removes_only_what_both_name(runs: Path) -> None:
    _make_run(runs, "q-0", days=60)
    assert _ridgeline(runs, "clean", "--keep", "1", "--older-than-days", "20").returncode == 0
    assert sorted(f.name for f in runs.iterdir()) == ["q-1", "q-2", "s-1"]


def test_clean_dry_run_and_clean_without_a_limit_remove_nothing(runs: Path) -> None:
    for options in (["--keep", "0", "--dry-run"], []):
        assert _ridgeline(runs, "clean", *options).returncode == 0
        assert len(list(runs.iterdir())) == 3


def test_an_interrupted_run_is_not_said_to_be_running(runs: Path) -> None:
    with Archive.open(runs / "q-1" / "archive.sqlite") as archive:
        archive.save_run(RunRecord(state="running"))
    said = "interrupted, resumable"
    assert _ridgeline(runs, "show", "q-1").stdout.splitlines()[0] == f"quickstart (q-1): {said}"
    assert f"q-1  {said}, " in _ridgeline(runs, "clean").stdout
    with lock_run(runs / "q-1"):
        told = _ridgeline(runs, "show", "q-1").stdout.splitlines()
        assert told[0] == "quickstart (q-1): still running: this is what it has found so far"
        assert told[1].endswith('ridgeline idea runs/q-1 "…", ridgeline seed runs/q-1 FILE, ridgeline stop runs/q-1')
        assert "fastest so far:  none yet" in told
        assert "q-1  running, in use, " in _ridgeline(runs, "clean").stdout
        with Archive.open(runs / "q-1" / "archive.sqlite") as archive:
            archive.save_run(RunRecord(stop_reason="3 rounds done"))
        said = "its rounds are over (3 rounds done), the best kernels are compared and certified"
        assert _ridgeline(runs, "show", "q-1").stdout.splitlines()[0] == f"quickstart (q-1): {said}"
        assert said in open_run(runs / "q-1").to_html()


def test_a_stopped_run_that_is_being_resumed_is_said_to_be_running(runs: Path) -> None:
    with Archive.open(runs / "q-1" / "archive.sqlite") as archive:
        archive.save_run(RunRecord(state="stopped"))
    assert "stopped, and can be resumed" in _ridgeline(runs, "show", "q-1").stdout
    with lock_run(runs / "q-1"):
        assert "still running" in _ridgeline(runs, "show", "q-1").stdout
        assert "still running" in open_run(runs / "q-1").to_html()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (RunRecord(state="stopped"), "resume:  {}"),
        (RunRecord(state="running"), "resume:  {}"),
        (RunRecord(state="budget", budget={"tokens": 100}), "go on:   {} --max-tokens 200"),
        (RunRecord(state="finished"), ""),
        (RunRecord(state="stopped", exported_at="2026-11-21"), ""),
    ],
)
def test_show_ends_with_how_a_run_goes_on(runs: Path, changes: RunRecord, line: str) -> None:
    with Archive.open(runs / "q-1" / "archive.sqlite") as archive:
        archive.save_run(changes)
    last = _ridgeline(runs, "show", "q-1").stdout.splitlines()[-1]
    command = last[9:].partition(" --max")[0]
    assert last == line.format(command) if line else last.startswith("cost: ")
    assert not line or command.endswith(f"run --resume {runs}/q-1")


def test_the_list_says_of_a_running_search_no_more_than_it_shows(runs: Path) -> None:
    with Archive.open(runs / "q-1" / "archive.sqlite") as archive:
        archive.save_run(RunRecord(state="running"))
    with lock_run(runs / "q-1"):
        assert "q-1  still running" in _ridgeline(runs, "show").stdout.splitlines()


def test_show_of_an_unknown_run_says_how_the_runs_are_listed(runs: Path) -> None:
    for unknown in ("q-7", "nothing-here"):
        assert_one_line(_ridgeline(runs, "show", unknown), "no such run", "ridgeline show lists the runs")


def test_show_and_export_leave_a_run_as_it_was(runs: Path) -> None:
    def contents() -> dict[Path, tuple[bytes, int]]:
        return {f: (f.read_bytes(), f.stat().st_mtime_ns) for f in runs.rglob("*") if f.is_file()}

    before = contents()
    assert _ridgeline(runs, "show", "id-q-2", "--json").returncode == 0
    assert _ridgeline(runs, "export", "q-2", "--out", "copy.sqlite").returncode == 0
    assert contents() == before


@pytest.mark.parametrize("command", [["show"], ["export"], ["export", "--jsonl"], ["merge", "into.sqlite"]])
def test_a_damaged_archive_is_said_in_one_line(runs: Path, command: list[str]) -> None:
    archive = runs / "q-1" / "archive.sqlite"
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    done = _ridgeline(runs, *command, "runs/q-1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "archive.sqlite: the database is damaged" in done.stderr


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda archive: os.truncate(archive, 100), "archive.sqlite: the database is damaged"),
        (lambda archive: os.truncate(archive, 0), "archive.sqlite: holds nothing yet"),
        (
            lambda archive: archive.write_bytes(Path(sys.executable).read_bytes()[:4096]),
            "archive.sqlite: not a Ridgeline archive",
        ),
        (Path.unlink, "its archive.sqlite is gone"),
    ],
)
def test_resume_of_a_damaged_or_vanished_archive_says_so(runs: Path, harm: Callable[[Path], Any], says: str) -> None:
    (runs / "q-1" / "result.json").write_text("{}")
    harm(runs / "q-1" / "archive.sqlite")
    done = _ridgeline(runs, "run", "--resume", "runs/q-1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert says in done.stderr


@pytest.mark.parametrize("command", ["show", "stop", "ship --out kernel", "export", "run --resume"])
def test_a_search_that_was_ended_before_it_stored_its_problem_is_told_as_such(runs: Path, command: str) -> None:
    with Archive.open(runs / "begun-1" / "archive.sqlite") as archive:
        archive.save_run(RunRecord(graph_version=GRAPH_VERSION))
    for name in ("runs/begun-1", "begun"):
        done = _ridgeline(runs, *command.split(), name)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "begun-1: its search was ended before anything was stored; start it again" in done.stderr
    assert "begun-1" not in _ridgeline(runs, "show").stdout


def test_what_a_resumed_search_does_not_take_from_a_changed_problem_is_named() -> None:
    problem = parse_problem(
        {"name": "p", "reference": "r.py", "ideas": ["be fast"], "tolerance": "bf16"}, Path("p.yaml")
    )
    was = problem.model_dump(mode="json")
    assert _changed_keys(was, problem) == []
    assert _changed_keys({}, problem) == []
    changed = problem.model_copy(update={"seeds": ["*.cpp"], "models": ["offline"]})
    (line,) = _changed_keys(was, changed)
    assert line.startswith("warning: seeds, models changed in problem.yaml")
    assert _changed_keys(was, problem.model_copy(update={"ideas": ["be faster"]})) == [], "new ideas are tried"


SQUARE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return BODY
def get_inputs():
    return [torch.rand(8, 4)]
"""


def test_import_makes_problems_and_says_of_each_whether_it_runs(tmp_path: Path) -> None:
    level = tmp_path / "repo" / "KernelBench" / "level1"
    level.mkdir(parents=True)
    bodies = {"1_Square": "x * x", "2_Noise": "x + torch.randn(8, 4)", "3_Large": "x + torch.ones(1 << 40, 1, 4)"}
    for name, body in bodies.items():
        (level / f"{name}.py").write_text(SQUARE.replace("BODY", body))
    (level / "4_Broken.py").write_text("def (")
    words = ("import", "kernelbench", "repo", "--level", "1")
    done = _ridgeline(tmp_path / "runs", *words)
    assert done.returncode == 0, done.stderr
    assert "level 1: 4 files, 3 parsed, 0 known to run, 1 form" in done.stdout
    done = _ridgeline(tmp_path / "runs", *words, "--check", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)}
    assert {key: (row["runnable"], row["code"]) for key, row in rows.items()} == {
        "1/1": (True, ""), "1/2": (False, "random"), "1/3": (False, "memory"), "1/4": (False, "form"),
    }  # fmt: skip
    assert (tmp_path / "kernelbench-problems" / "level1" / "kb1_1_square" / "problem.yaml").is_file()
    assert rows["1/3"]["judge_bytes"] > 11 << 47
    done = _ridgeline(tmp_path / "runs", "import", "kernelbench", "nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
