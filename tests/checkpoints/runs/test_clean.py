from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.export import merge_archives
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.clean import choose_old, list_runs, remove_run
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.tools.errors import RunError

DAY_S = 86400.0


def _make_run(run_dir: Path, problem: str, days: int) -> None:
    with Archive.open(run_dir / "archive.sqlite") as archive:
        archive.save_run(RunRecord(problem={"name": problem}, state="finished"))
    (run_dir / "run.log").write_text("x" * 1000)
    for file in run_dir.iterdir():
        os.utime(file, (time.time() - days * DAY_S,) * 2)


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    """Give three runs, last used 1, 10 and 30 days ago."""
    for name, days in (("new", 1), ("middle", 10), ("old", 30)):
        _make_run(tmp_path / name, "quickstart", days)
    (tmp_path / "notes").mkdir()
    return tmp_path


def test_runs_are_listed_longest_unused_first_and_listing_does_not_make_them_young(runs_dir: Path) -> None:
    for _ in range(2):
        runs = list_runs(runs_dir)
        assert [r.path.name for r in runs] == ["old", "middle", "new"]
        assert runs[0].age_s == pytest.approx(30 * DAY_S, rel=0.01)
    assert {(r.problem, r.state, r.is_running) for r in runs} == {("quickstart", "finished", False)}
    assert runs[0].size_bytes > 1000


def test_a_folder_of_several_searches_is_listed_and_never_chosen(runs_dir: Path) -> None:
    merge_archives(runs_dir / "all" / "archive.sqlite", [runs_dir / "new", runs_dir / "old"])
    os.utime(runs_dir / "all" / "archive.sqlite", (time.time() - 40 * DAY_S,) * 2)
    runs = list_runs(runs_dir)
    assert {run.path.name: run.state for run in runs} == {
        "all": "several searches",
        **dict.fromkeys(["old", "middle", "new"], "finished"),
    }
    assert [r.path.name for r in choose_old(runs, older_than_s=7 * DAY_S)] == ["old", "middle"]
    assert [r.path.name for r in choose_old(runs, keep=0)] == ["old", "middle", "new"]


def test_old_runs_are_chosen_by_age_or_by_number(runs_dir: Path) -> None:
    runs = list_runs(runs_dir)
    assert [r.path.name for r in choose_old(runs, older_than_s=7 * DAY_S)] == ["old", "middle"]
    assert [r.path.name for r in choose_old(runs, keep=2)] == ["old"]
    assert choose_old(runs) == []


def test_with_both_limits_only_what_is_older_and_beyond_the_kept_ones_is_chosen(runs_dir: Path) -> None:
    runs = list_runs(runs_dir)
    assert [r.path.name for r in choose_old(runs, older_than_s=7 * DAY_S, keep=2)] == ["old"]
    assert [r.path.name for r in choose_old(runs, older_than_s=20 * DAY_S, keep=1)] == ["old"]
    assert choose_old(runs, older_than_s=7 * DAY_S, keep=3) == []
    assert choose_old(runs, older_than_s=60 * DAY_S, keep=0) == []


def test_the_newest_runs_of_each_problem_are_kept(runs_dir: Path) -> None:
    for name, days in (("softmax-1", 40), ("softmax-2", 50)):
        _make_run(runs_dir / name, "softmax", days)
    chosen = choose_old(list_runs(runs_dir), keep=1)
    assert [r.path.name for r in chosen] == ["softmax-2", "old", "middle"]


def test_a_running_run_is_neither_chosen_nor_removed(runs_dir: Path) -> None:
    with lock_run(runs_dir / "old"):
        chosen = choose_old(list_runs(runs_dir), keep=0)
        assert {r.path.name for r in chosen} == {"middle", "new"}
        with pytest.raises(RunError, match="another search of this process uses it"):
            remove_run(runs_dir / "old")
    assert (runs_dir / "old" / "archive.sqlite").is_file()


def test_a_removed_run_is_gone_and_a_folder_that_is_no_run_stays(runs_dir: Path) -> None:
    remove_run(runs_dir / "old")
    assert sorted(f.name for f in runs_dir.iterdir()) == ["middle", "new", "notes"]
    with pytest.raises(RunError, match="not a run folder"):
        remove_run(runs_dir / "notes")


def test_a_damaged_run_is_listed_as_damaged(runs_dir: Path) -> None:
    (runs_dir / "new" / "archive.sqlite").write_bytes(b"garbage " * 999)
    assert {r.path.name: r.state for r in list_runs(runs_dir)}["new"] == "damaged"
