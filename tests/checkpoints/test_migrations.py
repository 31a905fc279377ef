"""A file of an older schema brought up to date, wholly or not at all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.database import Database, Migration
from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.journal import Journal
from ridgeline.checkpoints.migrations import ARCHIVE
from ridgeline.checkpoints.result import build_result, show_run
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode

_SCHEMA_3 = Path(__file__).parent / "archive_schema_3.sql"
REASON = "the engine failed, the kernel may be sound: the judge died"


def _schema_3(path: Path) -> Path:
    """Write a stopped search's archive of schema 3, in which the engine had failed on a kernel and a tuned point."""
    with sqlite3.connect(path) as connection:
        connection.executescript(_SCHEMA_3.read_text(encoding="utf-8"))
    connection.close()
    return path


def test_migrations_bring_a_file_of_the_first_schema_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    Database.open(path, ARCHIVE[:1], create=True, what="archive").close()
    with Archive.open(path) as archive:
        archive.charge("a", wall_s=1.0, what="x")
        assert archive.database.first("PRAGMA user_version") == {"user_version": ARCHIVE[-1].number}
        assert archive.database.query("SELECT COUNT(*) AS n FROM model_calls") == [{"n": 0}]
        assert archive.engine_failures() == []


def test_a_migration_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    broken = Migration(number=2, title="broken", statements=("CREATE TABLE half (x)", "CREATE TABLE half (x)"))
    with pytest.raises(StorageError):
        Database.open(path, (ARCHIVE[0], broken), create=True, what="archive")
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    connection.close()


@pytest.mark.parametrize("is_read_only", [False, True])
def test_engine_failures_of_schema_3_leave_the_evaluations(tmp_path: Path, *, is_read_only: bool) -> None:
    path = _schema_3(tmp_path / "archive.sqlite")
    before = path.read_bytes()
    with Archive.open_read_only(path) if is_read_only else Archive.open(path, create=False) as archive:
        assert archive.engine_failures() == [
            EngineFailure(candidate_id="r1i0v0a0", purpose=Purpose.SEARCH, reason=REASON),
            EngineFailure(candidate_id="seed-at0", purpose=Purpose.TUNE, reason=REASON),
        ]
        assert [(e.candidate_id, e.purpose, e.reason_code) for e in archive.evaluations()] == [
            ("seed-a", Purpose.SEARCH, ReasonCode.NONE),
            ("r1i0v1a0", Purpose.SEARCH, ReasonCode.MODEL_FAILED),
            ("seed-a", Purpose.CERTIFY, ReasonCode.ENGINE_FAILED),
        ]
        assert [e.candidate_id for e in archive.ranking()] == ["seed-a"]
        assert archive.run().search_id == "5e4c"
        assert Journal(archive).totals()["calls"] == 1
        assert build_result(archive)["state"] == "stopped"
        assert show_run(archive)["ideas"][0]["failure"] == "refused (model_failed): offline wrote no kernel"
    if is_read_only:
        assert path.read_bytes() == before


def test_a_process_killed_before_the_last_step_leaves_schema_3_whole(tmp_path: Path) -> None:
    path = _schema_3(tmp_path / "archive.sqlite")
    killed = Migration(
        number=ARCHIVE[-1].number, title="killed", statements=(*ARCHIVE[-1].statements, "SELECT no_such_function()")
    )
    with pytest.raises(StorageError):
        Database.open(path, (*ARCHIVE[:-1], killed), create=False, what="archive")
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert connection.execute("SELECT COUNT(*) FROM evaluations").fetchone() == (5,)
    connection.close()
    with Archive.open(path, create=False) as archive:
        assert len(archive.engine_failures()) == 2
