from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.result import show_run
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.records import Origin, Purpose, ReasonCode, Status, Trial, Verdict


def test_every_record_comes_back_as_it_was_stored(archive: Archive, story: SimpleNamespace) -> None:
    idea, candidate = story.idea(1, 1, "Fuse", None), story.candidate("r1i1v0a0", idea_id="r1i1", tunables={"B": "64"})
    evaluation = story.ok("r1i1v0a0", 1.5)
    archive.add_ideas([idea])
    archive.add_candidate(candidate)
    archive.add_evaluation(evaluation)
    archive.save("builds", "k", "r1i1v0a0", evaluation.build)
    archive.save_baselines(story.baselines())
    archive.save_description(story.description())
    assert archive.idea("r1i1") == idea
    assert archive.candidate("r1i1v0a0") == candidate
    assert archive.evaluation("r1i1v0a0") == evaluation
    assert archive.find("builds", "k") == evaluation.build.to_json()
    assert archive.baselines() == story.baselines()
    assert archive.description() == story.description()
    assert archive.evaluation("r1i1v0a0", Purpose.CERTIFY) is None
    assert archive.find("timings", "k") is None


def test_an_unknown_id_is_a_key_error(archive: Archive) -> None:
    with pytest.raises(KeyError, match="r9i9v0a0"):
        archive.candidate("r9i9v0a0")
    with pytest.raises(ValueError, match="none of"):
        archive.find("candidates; DROP TABLE ideas", "k")


def test_filling_twice_changes_nothing(filled: Archive, story: SimpleNamespace) -> None:
    before = _dump(filled.path)
    story.fill(filled)
    assert _dump(filled.path) == before


def test_infinite_error_of_a_trial_comes_back_infinite(archive: Archive) -> None:
    trials = (Trial(name="nominal_0", rel_error=math.inf, gate=1e-5, passed=False),)
    verdict = Verdict(
        status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, rel_error=math.inf, trials=trials, reason='a "-" b'
    )
    archive.save("verdicts", "k", "c", verdict)
    assert Verdict.from_json(archive.find("verdicts", "k") or {}) == verdict
    archive.save("verdicts", "n", "c", replace(verdict, rel_error=math.nan))
    assert (archive.find("verdicts", "n") or {})["rel_error"] == "nan"
    row = archive.database.first("SELECT rel_error FROM verdicts WHERE key = 'k'")
    assert row == {"rel_error": "inf"}


def test_candidates_are_found_by_round_idea_and_origin(filled: Archive) -> None:
    assert [c.id for c in filled.candidates(round=2, idea_id="r2i1")] == ["r2i1v0a0", "r2i1v1a0"]
    assert [c.id for c in filled.candidates(origin=Origin.SEED)] == ["seed-naive", "seed-fused"]
    assert len(filled.ideas()) == 16
    assert [i.id for i in filled.ideas(round=3)] == ["r3i1", "r3i2", "r3i3", "r3i4"]


def test_save_run_merges_and_a_search_id_given_late_replaces_the_first(archive: Archive) -> None:
    archive.save_certificate({"passed": True})
    first = archive.run()["search_id"]
    archive.save_run({"state": "running"})
    assert archive.run() == {"search_id": first, "state": "running"}
    archive.save_run({"search_id": "mine", "state": "finished"})
    assert archive.run() == {"search_id": "mine", "state": "finished"}
    assert archive.certificate() == {"passed": True}


def test_ranking_is_not_fooled_by_a_machine_that_was_slow_for_a_while(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_evaluation(story.ok("steady", 2.0))
    archive.add_evaluation(story.ok("during-a-slow-minute", 2.2, drift=1.4))
    archive.add_evaluation(story.failed("wrong", Status.WRONG, ReasonCode.WRONG_VALUES, "no"))
    assert [e.candidate_id for e in archive.ranking()] == ["during-a-slow-minute", "steady"]
    assert [e.candidate_id for e in archive.ranking(limit=1)] == ["during-a-slow-minute"]
    assert archive.ranking(Purpose.TUNE) == []


def test_tried_ideas_tell_the_best_result_or_why_all_failed(filled: Archive) -> None:
    tried = {t["id"]: t for t in filled.tried_ideas()}
    assert tried["r4i1"]["best_candidate_id"] == "r4i1v0a0t3"
    assert tried["r4i1"]["best_speedup"] == 2.31
    assert tried["r1i4"]["best_speedup"] is None
    assert tried["r1i4"]["failure"].startswith("runtime_error (crashed): killed by SIGSEGV")
    assert tried["r2i1"]["failure"] == ""


def test_a_cost_is_charged_once(archive: Archive) -> None:
    for _ in range(3):
        archive.charge("r1i1v0a0:measure", cpu_s=2.5, wall_s=1.0, what="evaluation")
    archive.charge("r1i1v1a0:measure", gpu_s=4.0, what="evaluation")
    assert archive.ledger_totals() == {"cpu_s": 2.5, "gpu_s": 4.0, "wall_s": 1.0}


def test_columns_are_readable_in_any_sqlite_browser(filled: Archive) -> None:
    with sqlite3.connect(filled.path) as browser:
        row = browser.execute(
            "SELECT status, reason_code, speedup, median_ms FROM evaluations WHERE candidate_id = 'r3i1v1a0'"
        ).fetchone()
        assert row[:3] == ("ok", "none", 2.18)
        top = browser.execute("SELECT candidate_id, idea FROM leaderboard LIMIT 1").fetchone()
        assert top == ("r4i1v0a0t3", "Align the row buffer and unroll by four")
        assert browser.execute("SELECT title, category FROM ideas WHERE id = 'r3i1'").fetchone()[0].startswith("Stream")
    browser.close()


def test_many_threads_write_and_read_at_once(archive: Archive, story: SimpleNamespace) -> None:
    def work(n: int) -> str:
        candidate_id = f"r1i{n}v0a0"
        archive.add_candidate(story.candidate(candidate_id))
        archive.add_evaluation(story.ok(candidate_id, 1 + n / 100))
        return archive.candidate(candidate_id).id

    with ThreadPoolExecutor(16) as threads:
        assert len(list(threads.map(work, range(64)))) == 64
    assert len(archive.candidates()) == 64
    assert archive.ranking(limit=1)[0].candidate_id == "r1i63v0a0"


_WRITER = """
import sys, os
from ridgeline.checkpoints.archive import Archive
archive = Archive.open(sys.argv[1])
n = 0
while True:
    archive.charge(f"{os.getpid()}:{n}", wall_s=1.0, what="x")
    print(n, flush=True)
    n += 1
"""


def test_what_was_stored_survives_kill_9_of_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    command = [sys.executable, "-c", _WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        for _ in range(50):
            last = int(writer.stdout.readline())
        writer.kill()
        rest = writer.stdout.read().split()
    acknowledged = 1 + max([last, *map(int, rest)])
    with Archive.open(path, create=False) as archive:
        assert archive.ledger_totals()["wall_s"] in (acknowledged, acknowledged + 1)


def test_several_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    code = """
import sys
from ridgeline.checkpoints.archive import Archive
Archive.open(sys.argv[1]).charge(sys.argv[2], wall_s=1, what="x")
"""
    path = tmp_path / "archive.sqlite"
    started = [subprocess.Popen([sys.executable, "-c", code, str(path), str(n)]) for n in range(4)]
    assert [p.wait(60) for p in started] == [0, 0, 0, 0]
    with Archive.open(path, create=False) as archive:
        assert archive.ledger_totals()["wall_s"] == 4


def _one_line(error: pytest.ExceptionInfo[StorageError], *parts: str) -> None:
    message = str(error.value)
    assert "\n" not in message
    assert all(part in message for part in parts), message


def test_garbage_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    path.write_bytes(b"this is not a database at all " * 200)
    with pytest.raises(StorageError) as error:
        Archive.open(path)
    _one_line(error, "archive.sqlite", "damaged")


@pytest.mark.parametrize("keep", [0.9, 0.5, 0.1])
def test_a_truncated_database_is_said_to_be_damaged(filled: Archive, keep: float) -> None:
    filled.close()
    data = filled.path.read_bytes()
    filled.path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(StorageError) as error:
        Archive.open(filled.path)
    _one_line(error, "archive.sqlite", "damaged")


def test_a_newer_schema_is_refused(archive: Archive) -> None:
    archive.close()
    with sqlite3.connect(archive.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageError) as error:
        Archive.open(archive.path)
    _one_line(error, "newer Ridgeline", "schema 99", "upgrade")


def test_a_foreign_database_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StorageError, match="not a Ridgeline archive"):
        Archive.open(tmp_path / "other.sqlite")
    with pytest.raises(StorageError, match="no such archive"):
        Archive.open(tmp_path / "none.sqlite", create=False)
    assert not (tmp_path / "none.sqlite").exists()


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(StorageError) as error:
        Archive.open(Path("/proc/ridgeline/archive.sqlite"))
    _one_line(error, "/proc/ridgeline/archive.sqlite")
    with pytest.raises(StorageError) as error:
        Archive.open(Path("/proc/archive.sqlite"))
    _one_line(error, "/proc/archive.sqlite", "cannot be written")


_IN_NAMESPACE = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
_FILL = """
import sys
from ridgeline.checkpoints.archive import Archive
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records import Candidate, Origin
try:
    archive = Archive.open(sys.argv[1])
    for n in range(1000):
        archive.add_candidate(Candidate(id=str(n), origin=Origin.MODEL, round=1, idea_id=None, parent_id=None,
            source="x" * 9000, language="cpp"))
except StorageError as error:
    print(error)
    print(len(archive.candidates()) == n if "full" in str(error) else "unwritten")
"""


def _run_on_mount(mount: str, folder: Path, code: str = _FILL) -> list[str]:
    inner = f'{mount} && exec "$0" -c "$1" "$2"'
    command = [*_IN_NAMESPACE, inner, sys.executable, code, str(folder / "archive.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_full_disk_is_said_in_one_line_and_loses_nothing_stored(tmp_path: Path) -> None:
    message, intact = _run_on_mount(f"mount -t tmpfs -o size=600k tmpfs {tmp_path}", tmp_path)
    assert "the disk is full" in message
    assert intact == "True"


def test_a_read_only_disk_is_said_in_one_line(filled: Archive) -> None:
    filled.close()
    folder = filled.path.parent
    message, _ = _run_on_mount(f"mount --bind -o ro {folder} {folder} && mount -o remount,bind,ro {folder}", folder)
    assert "cannot be written" in message


def _contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {f.name: (f.read_bytes(), f.stat().st_mtime_ns) for f in folder.iterdir()}


def test_reading_changes_nothing_in_the_folder(filled: Archive) -> None:
    filled.close()
    before = _contents(filled.path.parent)
    with Archive.open_read_only(filled.path.parent) as archive:
        assert len(archive.candidates()) == 35
        with pytest.raises(StorageError, match="cannot be written"):
            archive.save_run({"state": "x"})
    assert _contents(filled.path.parent) == before


def test_a_file_of_an_older_schema_is_read_and_stays_as_it_is(tmp_path: Path) -> None:
    from ridgeline.checkpoints.database import Database
    from ridgeline.checkpoints.journal import Journal
    from ridgeline.checkpoints.migrations import ARCHIVE

    Database.open(tmp_path / "archive.sqlite", ARCHIVE[:1], create=True, what="archive").close()
    before = _contents(tmp_path)
    with Archive.open_read_only(tmp_path) as archive:
        assert Journal(archive).totals()["calls"] == 0
        with pytest.raises(StorageError):
            archive.save_run({"state": "x"})
    assert _contents(tmp_path) == before


_KILLED = """
import os, signal, sys
from ridgeline.checkpoints.archive import Archive
Archive.open(sys.argv[1]).save_run({"search_id": "killed"})
os.kill(os.getpid(), signal.SIGKILL)
"""
_READ = """
import sys
from ridgeline.checkpoints.archive import Archive
print(Archive.open_read_only(sys.argv[1]).run()["search_id"])
"""


def test_what_a_killed_process_left_in_the_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    assert subprocess.run([sys.executable, "-c", _KILLED, str(path)], timeout=60).returncode == -9
    assert path.with_name("archive.sqlite-wal").stat().st_size > 0
    names = sorted(f.name for f in tmp_path.iterdir())
    with Archive.open_read_only(path) as archive:
        assert archive.run()["search_id"] == "killed"
    assert sorted(f.name for f in tmp_path.iterdir()) == names


@pytest.mark.parametrize("has_shm", [True, False])
def test_what_a_killed_process_left_in_the_log_is_read_on_a_read_only_disk(tmp_path: Path, has_shm: bool) -> None:
    path = tmp_path / "archive.sqlite"
    assert subprocess.run([sys.executable, "-c", _KILLED, str(path)], timeout=60).returncode == -9
    if not has_shm:
        path.with_name("archive.sqlite-shm").unlink()
    mount = f"mount --bind -o ro {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}"
    assert _run_on_mount(mount, tmp_path, _READ) == ["killed"]


def test_a_finished_archive_on_a_read_only_disk_is_read(filled: Archive) -> None:
    filled.close()
    folder = filled.path.parent
    mount = f"mount --bind -o ro {folder} {folder} && mount -o remount,bind,ro {folder}"
    assert _run_on_mount(mount, folder, _READ) == ["5e4c"]


@pytest.mark.parametrize("keep", [0.9, 0.5, 0.1, 0.001])
def test_a_truncated_database_that_is_only_read_is_said_to_be_damaged(filled: Archive, keep: float) -> None:
    filled.close()
    data = filled.path.read_bytes()
    filled.path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(StorageError) as error, Archive.open_read_only(filled.path) as archive:
        show_run(archive)
    _one_line(error, "archive.sqlite", "damaged" if keep > 0.01 else "")


@pytest.mark.parametrize("filling", [b"\0", b"\xff", b"{"])
@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_database_with_a_spoiled_part_is_read_or_said_to_be_damaged(
    filled: Archive, place: float, filling: bytes
) -> None:
    filled.close()
    data = bytearray(filled.path.read_bytes())
    start = int(len(data) * place) // 4096 * 4096
    data[start : start + 16384] = filling * 16384
    filled.path.write_bytes(data)
    try:
        with Archive.open_read_only(filled.path) as archive:
            show_run(archive)
    except StorageError as error:
        assert "damaged" in str(error)  # noqa: PT017 - a page that is not read spoils nothing


def test_a_record_that_is_no_json_is_said_to_be_damaged(filled: Archive) -> None:
    with pytest.raises(StorageError) as error:
        filled.database.value_of("{")
    _one_line(error, "archive.sqlite", "damaged")


def test_migrations_bring_a_file_of_the_first_schema_up_to_date(tmp_path: Path) -> None:
    from ridgeline.checkpoints.database import Database
    from ridgeline.checkpoints.migrations import ARCHIVE

    path = tmp_path / "archive.sqlite"
    Database.open(path, ARCHIVE[:1], create=True, what="archive").close()
    with Archive.open(path) as archive:
        archive.charge("a", wall_s=1.0, what="x")
        assert archive.database.first("PRAGMA user_version") == {"user_version": ARCHIVE[-1].number}
        assert archive.database.query("SELECT COUNT(*) AS n FROM model_calls") == [{"n": 0}]


def test_a_migration_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    from ridgeline.checkpoints.database import Database, Migration
    from ridgeline.checkpoints.migrations import ARCHIVE

    path = tmp_path / "archive.sqlite"
    broken = Migration(number=2, title="broken", statements=("CREATE TABLE half (x)", "CREATE TABLE half (x)"))
    with pytest.raises(StorageError):
        Database.open(path, (ARCHIVE[0], broken), create=True, what="archive")
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    connection.close()


def test_run_of_a_file_with_several_searches_asks_for_one(archive: Archive) -> None:
    with archive.database.write() as rows:
        rows.table("runs").insert_all([{"search_id": s, "record": "{}"} for s in "ab"])
    with pytest.raises(RunError, match="several searches"):
        archive.run()
    assert archive.runs() == [{}, {}]


def _dump(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        tables = [r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        rows = [f"{t}: {r}" for t in tables for r in connection.execute(f"SELECT * FROM {t} ORDER BY rowid")]
    connection.close()
    return rows
