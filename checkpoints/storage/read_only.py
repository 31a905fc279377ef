"""Connections for reading a SQLite file, also on a read-only disk."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ridgeline.checkpoints.storage.errors import BUSY_TIMEOUT_S, UNWRITABLE

_WITHOUT_SHM = UNWRITABLE | {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}
"""Errors of a reader that cannot make the -shm file it needs beside a log: a read-only folder, or a full disk."""


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that changes neither the file nor its folder, with what a killed process left in the log."""
    companions = [path.with_name(path.name + end) for end in ("-wal", "-journal")]
    if not any(companion.exists() for companion in companions):
        # No process has the file open. mode=ro alone would leave new -wal and -shm files beside the file.
        return _connect(f"{path.as_uri()}?mode=ro&immutable=1")
    connection = _connect(f"{path.as_uri()}?mode=ro")
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in _WITHOUT_SHM:
            raise
        return _copy_elsewhere(path, companions)
    return connection


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False)


def _copy_elsewhere(path: Path, companions: Sequence[Path]) -> sqlite3.Connection:
    """Return a connection to a copy in memory of a file with its log; a temporary folder joins the two."""
    with tempfile.TemporaryDirectory(prefix="ridgeline-") as folder:
        for file in (path, *companions):
            if file.exists():
                shutil.copyfile(file, Path(folder) / file.name)
        with closing(sqlite3.connect(Path(folder) / path.name)) as whole:
            return in_memory(whole)


def in_memory(source: sqlite3.Connection) -> sqlite3.Connection:
    """Return a connection to a copy in memory."""
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    source.backup(copy)
    return copy
