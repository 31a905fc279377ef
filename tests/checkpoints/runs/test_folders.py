from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.checkpoints.conftest import make_candidate

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.export import jsonl_lines, merge_archives
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs import folders
from ridgeline.checkpoints.runs.clean import list_runs
from ridgeline.checkpoints.runs.folders import (
    INTERRUPTED,
    begun_record,
    check_graph_version,
    find_run,
    find_running,
    is_locked,
    is_unbegun,
    lock_run,
    newest_held,
    newest_unfinished,
    read_run,
    run_folders,
    run_named,
    state_now,
)
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.wording import worded_for_command_line

_HOLD = """
import sys, time
from pathlib import Path
from ridgeline.checkpoints.runs.folders import lock_run
with lock_run(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def _make_run(runs_dir: Path, name: str, problem: str, state: str, search_id: str = "") -> Path:
    with Archive.open(runs_dir / name / "archive.sqlite") as archive:
        archive.save_run(RunRecord(problem={"name": problem}, state=state, search_id=search_id or f"id-{name}"))
    time.sleep(0.002)  # entries are ordered by milliseconds
    return runs_dir / name


def test_a_run_held_by_another_process_is_refused_by_its_pid_until_that_process_is_killed(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(run_dir)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        assert is_locked(run_dir)
        with pytest.raises(RunError, match=rf"in use by process {holder.pid}; .*kill {holder.pid}"), lock_run(run_dir):
            pass
        holder.kill()
    with lock_run(run_dir):
        assert is_locked(run_dir)
    assert not is_locked(run_dir)


def test_a_search_that_holds_its_run_is_stopped_by_a_command_and_not_with_its_process(tmp_path: Path) -> None:
    run = _make_run(tmp_path, "a run", "toy", "running")
    with lock_run(run), pytest.raises(RunError) as refused, lock_run(run):
        pass
    said = str(refused.value)
    assert said.endswith(f"stop it with: ridgeline stop '{run}'"), "its process may be a whole host"
    assert said.startswith(f"{run}: another search of this process uses it; wait for it, or")


def test_a_folder_that_this_process_holds_is_not_freed_by_killing_it(tmp_path: Path) -> None:
    with lock_run(tmp_path):
        for _ in range(2):
            with pytest.raises(RunError) as refused, lock_run(tmp_path):
                pass
            assert str(refused.value) == f"{tmp_path}: another search of this process uses it; wait for it"
    with lock_run(tmp_path):
        pass


def test_a_search_that_ends_well_while_it_is_looked_at_was_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _make_run(tmp_path, "softmax-1", "softmax", "running")
    with lock_run(run):
        pass
    record = read_run(run)
    assert record is not None and state_now(run, record) == INTERRUPTED

    def ends(run_dir: Path) -> bool:
        with Archive.open(run_dir) as archive:
            archive.save_run(RunRecord(state="finished"))
        return False

    monkeypatch.setattr("ridgeline.checkpoints.runs.folders.is_locked", ends)
    assert state_now(run, record) == "finished"


@pytest.mark.parametrize("part", [{"problem": {"name": "toy"}}, {"settings": {}}])
def test_a_run_that_nobody_holds_and_that_stored_no_state_is_interrupted(tmp_path: Path, part: dict[str, Any]) -> None:
    with lock_run(tmp_path), Archive.open(tmp_path / "archive.sqlite") as archive:
        archive.save_run(RunRecord(**part))
        assert state_now(tmp_path, archive.run()) == "running"
    record = read_run(tmp_path)
    assert record is not None and record.state is None
    assert state_now(tmp_path, record) == INTERRUPTED


@pytest.mark.parametrize("state", ["running", "stopped", "finished"])
def test_a_running_search_whose_folder_has_no_lock_is_interrupted(tmp_path: Path, state: str) -> None:
    run = _make_run(tmp_path, "softmax-1", "softmax", state)  # as a copy of `RUN/*` has it
    record = read_run(run)
    assert record is not None and not (run / ".lock").exists()
    assert state_now(run, record) == (INTERRUPTED if state == "running" else state)


def test_whoever_only_looks_at_a_folder_keeps_no_search_out(tmp_path: Path) -> None:
    with lock_run(tmp_path):
        pass
    descriptor = os.open(tmp_path / ".lock", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)  # as `is_locked` does
    threading.Timer(0.05, os.close, (descriptor,)).start()
    with lock_run(tmp_path):
        assert is_locked(tmp_path)


def test_a_folder_in_the_place_of_the_lock_is_named(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with (
        pytest.raises(RunError, match=rf"^{tmp_path}/\.lock: is a directory in the place of the run's lock; remove it"),
        lock_run(tmp_path),
    ):
        pass


def test_a_name_in_a_folder_of_runs_is_not_looked_up_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = _make_run(tmp_path / "runs", "softmax-1", "softmax", "stopped", search_id="abc")
    _make_run(tmp_path, "softmax-1", "softmax", "stopped")
    monkeypatch.chdir(tmp_path)
    assert find_run(tmp_path / "runs", "softmax-1") == Path("softmax-1")
    assert {run_named(tmp_path / "runs", name) for name in ("softmax-1", "soft", "abc")} == {own}
    with pytest.raises(RunError, match=r"softmax-2: no such run; did you mean softmax-1\?"):
        run_named(tmp_path / "runs", "softmax-2")


def test_a_folder_that_cannot_be_made_is_told_with_the_option_that_names_another(tmp_path: Path) -> None:
    said = "/proc/a-run: cannot be made (no such file or directory); choose another --run-dir"  # /proc refuses root too
    with (
        worded_for_command_line(is_so=True),
        pytest.raises(StorageError, match=f"^{re.escape(said)}$"),
        lock_run(Path("/proc/a-run")),
    ):
        pass


def test_a_lock_is_dropped_after_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock_run(tmp_path):
        1 / 0  # noqa: B018
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "none")


def test_a_run_of_another_graph_version_is_refused_with_what_to_do(archive: Archive) -> None:
    check_graph_version(archive, 3)
    check_graph_version(archive, 3)
    with pytest.raises(RunError, match="begun by graph version 3, this Ridgeline has 4; .*start a new run"):
        check_graph_version(archive, 4)


def test_newest_unfinished_skips_finished_foreign_running_and_damaged_runs(tmp_path: Path) -> None:
    old = _make_run(tmp_path, "q-1", "quickstart", "stopped")
    killed = _make_run(tmp_path, "q-2", "quickstart", "running")
    _make_run(tmp_path, "q-3", "quickstart", "finished")
    _make_run(tmp_path, "m-4", "matmul", "stopped")
    (tmp_path / "q-5").mkdir()
    (tmp_path / "q-5" / "archive.sqlite").write_bytes(b"garbage" * 1000)
    assert newest_unfinished(tmp_path, "quickstart") == killed
    with lock_run(killed):
        assert newest_unfinished(tmp_path, "quickstart") == old
        assert newest_held(tmp_path, "quickstart") == killed
        assert newest_held(tmp_path, "matmul") is None
    assert newest_held(tmp_path, "quickstart") is None
    assert newest_unfinished(tmp_path, "softmax") is None
    assert newest_unfinished(tmp_path / "none", "quickstart") is None


def test_a_search_that_was_ended_before_it_stored_anything_lost_no_archive(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for left in (".lock", "run.log"):
        (run / left).touch()
        with pytest.raises(RunError, match="run: its search was ended before anything was stored; start it again"):
            find_run(tmp_path, str(run))
    (run / "result.json").touch()
    with pytest.raises(RunError, match="its archive.sqlite is gone"):
        find_run(tmp_path, str(run))


def test_a_search_that_was_ended_before_it_stored_what_it_searches_for_is_no_run(tmp_path: Path) -> None:
    run = tmp_path / "quickstart-0902"
    with lock_run(run), Archive.open(run / "archive.sqlite") as archive:
        archive.save_run(RunRecord(graph_version=7))
        assert find_run(tmp_path, str(run)) == run, "its search begins"
        assert find_running(tmp_path, "quick") == (run, 1)
    for find in (find_run, find_running):
        for named in (str(run), "quick"):
            with pytest.raises(RunError, match="0902: its search was ended before anything was stored; start it again"):
                find(tmp_path, named)
    assert read_run(run) is None
    [listed] = list_runs(tmp_path)
    assert listed.state == "never begun"
    begun = _make_run(tmp_path, "quickstart-0901", "quickstart", "stopped")
    assert find_run(tmp_path, "quick") == begun


def _merged(runs_dir: Path) -> Path:
    """Return a folder of several searches among the runs that they come from: a finished one, then one that was stopped."""
    runs = [_make_run(runs_dir, name, "quickstart", name) for name in ("finished", "stopped")]
    for run in runs:
        with Archive.open(run / "archive.sqlite") as archive:
            archive.add_candidates([make_candidate(f"seed-{run.name}")])
    merge_archives(runs_dir / "merged" / "archive.sqlite", runs)
    return runs_dir / "merged"


def test_a_folder_whose_archive_holds_several_searches_is_found(tmp_path: Path) -> None:
    merged = _merged(tmp_path)
    for find in (find_run, run_named):
        assert find(tmp_path, "merged") == merged
    assert find_run(tmp_path, str(merged)) == merged
    exported = [json.loads(line)["id"] for line in jsonl_lines(merged)]
    assert exported == ["id-finished/seed-finished", "id-stopped/seed-stopped"]


def test_a_folder_of_several_searches_is_no_run_and_hides_none_of_the_others(tmp_path: Path) -> None:
    merged = _merged(tmp_path)
    assert read_run(merged) is None and not is_unbegun(merged)
    assert newest_unfinished(tmp_path, "quickstart") == tmp_path / "stopped"
    assert newest_held(tmp_path, "quickstart") is None
    assert find_run(tmp_path, "id-stopped") == tmp_path / "stopped"
    assert {run.path.name: run.state for run in list_runs(tmp_path)} == {
        "finished": "finished",
        "stopped": "stopped",
        "merged": "several searches",
    }
    with pytest.raises(RunError, match="zzz: no such run"):
        find_run(tmp_path, "zzz")


@pytest.mark.parametrize("part", [{"problem": {"name": "toy"}}, {"settings": {}}, {"state": "running"}])
def test_a_folder_is_unbegun_as_long_as_its_record_is_blank(tmp_path: Path, part: dict[str, Any]) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        assert is_unbegun(tmp_path) and archive.run().is_blank
        archive.save_run(RunRecord(**part))
        assert not is_unbegun(tmp_path) and not archive.run().is_blank


def test_find_run_takes_a_path_a_name_its_beginning_or_a_search_id(tmp_path: Path) -> None:
    first = _make_run(tmp_path, "quickstart-0901", "quickstart", "stopped", "abc123")
    _make_run(tmp_path, "quickstart-0902", "quickstart", "stopped")
    assert find_run(tmp_path, first) == first
    assert find_run(tmp_path, "quickstart-0901") == first
    assert find_run(tmp_path, "abc123") == first
    both = r"several runs match: quickstart-0901 \({}running\), quickstart-0902 \(not running\); name one in full"
    with pytest.raises(RunError, match=both.format("not ")):
        find_run(tmp_path, "quick")
    with lock_run(first), pytest.raises(RunError, match=both.format("")):
        find_run(tmp_path, "quick")
    with pytest.raises(RunError, match="no such run; did you mean quickstart-090"):
        find_run(tmp_path, "quikstart-0901")


def test_a_name_is_held_against_the_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _make_run(tmp_path, "quickstart-0901", "quickstart", "stopped", "abc123")
    looked: list[Path] = []
    monkeypatch.setattr(folders, "run_folders", lambda runs: looked.append(runs) or run_folders(runs))
    assert find_running(tmp_path, "quick") == (first, 1)
    assert find_run(tmp_path, "abc123") == first
    assert looked == [tmp_path, tmp_path]


def test_find_running_takes_the_one_run_of_a_name_that_runs(tmp_path: Path) -> None:
    first, second = (_make_run(tmp_path, f"quickstart-090{n}", "quickstart", "stopped") for n in (1, 2))
    assert find_running(tmp_path, first) == (first, 0)
    assert find_running(tmp_path, "quickstart-0902") == (second, 1)
    with pytest.raises(RunError, match=r"quickstart-0901 \(not running\), quickstart-0902 \(not running\)"):
        find_running(tmp_path, "quick")
    with lock_run(first):
        assert find_running(tmp_path, "quick") == (first, 2)
        with (
            lock_run(second),
            pytest.raises(RunError, match=r"quickstart-0901 \(running\), quickstart-0902 \(running\)"),
        ):
            find_running(tmp_path, "quick")


def test_a_search_that_has_not_begun_is_told_nothing(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        archive.save_run(RunRecord(graph_version=3))
        assert is_unbegun(tmp_path)
        with lock_run(tmp_path), pytest.raises(RunError, match="has not begun yet; try again in a moment"):
            begun_record(tmp_path, 3)
        with pytest.raises(RunError, match="was ended before anything was stored; start it again"):
            begun_record(tmp_path, 3)
        archive.save_run(RunRecord(problem={"name": "quickstart"}, settings={"rounds": 2}))
    assert not is_unbegun(tmp_path)
    assert begun_record(tmp_path, 3).problem_name == "quickstart"
    with pytest.raises(RunError, match="begun by graph version 3, this Ridgeline has 4"):
        begun_record(tmp_path, 4)


@pytest.mark.parametrize("has_runs", [False, True])
def test_what_is_no_run_is_named_with_what_to_give_instead(tmp_path: Path, has_runs: bool) -> None:
    runs = tmp_path / "runs"
    if has_runs:
        _make_run(runs, "quickstart-0901", "quickstart", "stopped")
    known = f"{runs} holds 1" if has_runs else f"there is none in {runs}"
    file = tmp_path / "notes.txt"
    file.write_text("")
    for given, said in (
        (tmp_path, "a folder that holds no run"),
        (file, "a file, not a run's folder"),
        (tmp_path / "absent", "no such run"),
    ):
        with pytest.raises(RunError) as error:
            find_run(runs, str(given))
        line = str(error.value)
        assert line.startswith(f"{given}: {said}; give ") and known in line and "\n" not in line


def test_a_folder_or_a_pipe_in_the_place_of_an_archive_is_told_as_none(tmp_path: Path) -> None:
    (tmp_path / "folder" / "archive.sqlite").mkdir(parents=True)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "archive.sqlite")
    for name in ("folder", "pipe"):
        (tmp_path / name / ".lock").touch()
        with pytest.raises(RunError, match="its archive.sqlite is not a file"):
            find_run(tmp_path, tmp_path / name)
