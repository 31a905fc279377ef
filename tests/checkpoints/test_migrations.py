"""A file of an older schema brought up to date, wholly or not at all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.tools.errors import StorageError


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
