"""An archive that another process is making just now."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from ridgeline import open_run
from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.checkpoints.storage import being_made
from ridgeline.tools.errors import StorageError


def begun(run: Path, *, is_database: bool) -> None:
    """Leave a run's archive as its maker's first steps do: an empty file, then one of SQLite's without a table."""
    run.mkdir(exist_ok=True)
    (run / FILE_NAME).touch()
    if is_database:
        with sqlite3.connect(run / FILE_NAME) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        connection.close()


@pytest.mark.parametrize("is_database", [False, True])
def test_a_run_whose_archive_is_being_made_is_waited_for(tmp_path: Path, *, is_database: bool) -> None:
    begun(tmp_path / "run", is_database=is_database)

    def make() -> None:
        time.sleep(0.2)
        with Archive.open(tmp_path / "run") as archive:
            archive.save_run(RunRecord(problem={"name": "toy"}))

    making = threading.Thread(target=make)
    with lock_run(tmp_path / "run"):  # as a search does that makes it
        making.start()
        try:
            assert open_run(tmp_path / "run").path == tmp_path / "run"
        finally:
            making.join()


@pytest.mark.parametrize("is_database", [False, True])
def test_one_that_stays_without_a_table_is_said_to_be_unmade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_database: bool
) -> None:
    begun(tmp_path / "run", is_database=is_database)
    then = time.time() - 3
    os.utime(tmp_path / "run" / FILE_NAME, (then, then))
    monkeypatch.setattr(time, "sleep", None)  # an old one is not waited for
    with pytest.raises(StorageError, match="holds nothing yet: another process is making it, or was ended") as error:
        open_run(tmp_path / "run")
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    monkeypatch.setattr(being_made, "MADE_WITHIN_S", 0.1)
    (tmp_path / "run" / FILE_NAME).touch()
    with pytest.raises(StorageError, match="holds nothing yet"):
        open_run(tmp_path / "run")
