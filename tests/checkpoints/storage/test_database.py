"""A file that is damaged, foreign, newer, older, on a full or read-only disk, or left by a killed process."""

from __future__ import annotations

import dataclasses
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.result import show_run
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.storage import database
from ridgeline.tools.errors import StorageError

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
        # one more where it was killed between its charge and its word
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


@pytest.mark.parametrize("text", ["x", "this is not a database at all " * 200])
@pytest.mark.parametrize("opens", [Archive.open, Archive.open_read_only])
def test_a_text_is_said_to_be_no_archive(tmp_path: Path, opens: Callable[[Path], Archive], text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(StorageError) as error:
        opens(path)
    _one_line(error, "notes.txt: not a Ridgeline archive; name another file")
    assert path.read_text() == text


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
from ridgeline.tools.records.search import Candidate; from ridgeline.tools.records.vocabulary import Origin
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


def test_a_limit_of_a_file_s_size_is_among_the_causes_of_a_failed_write(tmp_path: Path) -> None:
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))\n{_FILL}"
    command = [sys.executable, "-c", limited, str(tmp_path / "archive.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "the disk refuses (disk I/O error); check that it is not full" in done.stdout
    assert "(ulimit -f)" in done.stdout


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
            archive.save_run(RunRecord(state="x"))
    assert _contents(filled.path.parent) == before


def test_a_file_of_an_older_schema_is_read_and_stays_as_it_is(tmp_path: Path) -> None:
    from ridgeline.checkpoints.calls.journal import Journal
    from ridgeline.checkpoints.storage.database import Database
    from ridgeline.checkpoints.storage.database_kind import Kind
    from ridgeline.checkpoints.storage.migrations import ARCHIVE

    Database.open(tmp_path / "archive.sqlite", ARCHIVE[:1], create=True, what=Kind.ARCHIVE).close()
    before = _contents(tmp_path)
    with Archive.open_read_only(tmp_path) as archive:
        assert Journal(archive).totals().calls == 0
        with pytest.raises(StorageError):
            archive.save_run(RunRecord(state="x"))
    assert _contents(tmp_path) == before


_KILLED = """
import os, signal, sys
from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
Archive.open(sys.argv[1]).save_run(RunRecord(search_id="killed"))
os.kill(os.getpid(), signal.SIGKILL)
"""


_READ = """
import sys
from ridgeline.checkpoints.archive import Archive
print(Archive.open_read_only(sys.argv[1]).run().search_id)
"""


def test_what_a_killed_process_left_in_the_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    assert subprocess.run([sys.executable, "-c", _KILLED, str(path)], timeout=60).returncode == -9
    assert path.with_name("archive.sqlite-wal").stat().st_size > 0
    names = sorted(f.name for f in tmp_path.iterdir())
    with Archive.open_read_only(path) as archive:
        assert archive.run().search_id == "killed"
    assert sorted(f.name for f in tmp_path.iterdir()) == names


@pytest.mark.parametrize("has_shm", [True, False])
def test_what_a_killed_process_left_in_the_log_is_read_on_a_read_only_disk(tmp_path: Path, has_shm: bool) -> None:
    path = tmp_path / "archive.sqlite"
    assert subprocess.run([sys.executable, "-c", _KILLED, str(path)], timeout=60).returncode == -9
    if not has_shm:
        path.with_name("archive.sqlite-shm").unlink()
    mount = f"mount --bind -o ro {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}"
    assert _run_on_mount(mount, tmp_path, _READ) == ["killed"]


_READ_ON_A_FULL_DISK = """
import sys
from pathlib import Path
from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
path = Path(sys.argv[1])
with Archive.open(path) as archive:
    archive.save_run(RunRecord(search_id="stored"))
path.with_name("archive.sqlite-wal").touch()
path.with_name("archive.sqlite-shm").write_bytes(b"shm")
try:
    with open(path.with_name("filler"), "wb", buffering=0) as filler:
        while filler.write(b"x" * 4096):
            pass
except OSError:
    pass
print(Archive.open_read_only(path).run().search_id)
"""


def test_an_archive_beside_an_empty_log_on_a_full_disk_is_read(tmp_path: Path) -> None:
    assert _run_on_mount(f"mount -t tmpfs -o size=600k tmpfs {tmp_path}", tmp_path, _READ_ON_A_FULL_DISK) == ["stored"]


@pytest.mark.parametrize("version", [1, -3])
@pytest.mark.parametrize("opens", [Archive.open, Archive.open_read_only])
def test_a_file_with_another_version_than_its_tables_have_is_said_to_be_damaged(
    filled: Archive, opens: Callable[[Path], Archive], version: int
) -> None:
    filled.close()
    with closing(sqlite3.connect(filled.path)) as connection:
        connection.execute(f"PRAGMA user_version={version}")
        connection.commit()
    content = filled.path.read_bytes()
    with pytest.raises(StorageError) as error:
        opens(filled.path)
    _one_line(error, "archive.sqlite", "the database is damaged")
    assert filled.path.read_bytes() == content


def test_a_file_whose_tables_another_process_makes_at_this_moment_is_none_of_a_stranger(
    filled: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.close()
    versions = iter([0])
    read = database._version
    monkeypatch.setattr(database, "_version", lambda rows: 0 if next(versions, None) == 0 else read(rows))
    with Archive.open(filled.path) as archive:
        assert archive.run().search_id == "5e4c"


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


def test_a_snapshot_sees_one_state_while_another_process_writes(filled: Archive) -> None:
    count = len(filled.candidates())
    with Archive.open_read_only(filled.path) as archive:
        with archive.database.snapshot():
            assert len(archive.candidates()) == count
            filled.add_candidate(dataclasses.replace(filled.candidates()[0], id="later"))
            assert len(archive.candidates()) == count
        assert len(archive.candidates()) == count + 1


def test_a_file_that_is_another_ones_place_by_now_takes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Archive.open(Path("archive.sqlite")) as archive:
        monkeypatch.chdir(tmp_path.parent)  # the file is where it was
        archive.charge("a", wall_s=1.0, what="x")
        (tmp_path / "archive.sqlite").rename(tmp_path / "elsewhere.sqlite")
        (tmp_path / "archive.sqlite").touch()
        with pytest.raises(StorageError, match=r"archive\.sqlite: was removed, moved away or replaced"):
            archive.charge("b", wall_s=1.0, what="x")
    assert (tmp_path / "archive.sqlite").stat().st_size == 0
