"""A SQLite file that several threads and processes share: opening, migrating, transactions.

Covered: a process killed at any instant (WAL with synchronous=NORMAL: what was committed stays), several threads
(one connection behind a lock), several processes (a busy timeout). Not covered: power loss may take the last commits,
and network file systems, on which WAL does not work.

Reading changes neither the file nor its folder; see `Database.open_read_only`.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import sqlite_utils

from ridgeline.checkpoints.storage.being_made import Unmade, once_made
from ridgeline.checkpoints.storage.database_kind import Kind, check_begins, check_kind, no_database_of
from ridgeline.checkpoints.storage.errors import BUSY_TIMEOUT_S, OCCUPIED, damaged, storage_errors
from ridgeline.checkpoints.storage.opened_file import OpenedFile
from ridgeline.checkpoints.storage.read_only import connect_read_only, in_memory
from ridgeline.tools.errors import StorageError

_INFINITY = "\u0001infinity"

_OCCUPIED_WAIT_S = 0.02
_CREATES = re.compile(r"CREATE TABLE (\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered step of a schema.

    The statements and the new version number are one transaction: after a kill at any instant the file has the whole
    step or none of it. Of two processes that open an old file at once, the second waits and then finds the step done.

    sqlite_utils.Migrations (4.2) guarantees less. It lists the pending steps before it begins a deferred transaction, so
    the second process would run the step again; and it stores no schema number, by which a newer file is refused.
    """

    number: int
    title: str
    statements: tuple[str, ...]


class Database:
    """One SQLite file with a known schema, safe to use from many threads."""

    def __init__(self, path: Path, rows: sqlite_utils.Database) -> None:
        self.path = path
        self._file = OpenedFile(path)
        self._rows = rows
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path, migrations: Sequence[Migration], *, create: bool, what: Kind) -> Self:
        """Open `path`, make it when `create`, and bring its schema up to date. `what` names it in messages.

        Raises:
            StorageError: missing, damaged, unwritable, full, of another kind, or written by a newer Ridgeline.
        """
        if not create and not path.is_file():
            raise StorageError(f"{path}: no such {what}")
        with storage_errors(path):
            check_begins(path, what)
            if create:
                path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
            with _closed_on_failure(connection) as rows:
                _prepare(rows, path, migrations, create=create, what=what)
        return cls(path, rows)

    @classmethod
    def open_read_only(cls, path: Path, migrations: Sequence[Migration], *, what: Kind) -> Self:
        """Open `path` to read it, also on a read-only disk, and change neither the file nor its folder.

        Commits that a killed process left in the -wal file are read. A file of an older schema is read through a
        migrated copy in memory. Only `open` checks the whole file; here damage is reported when a query meets it. Waits
        for one that is being made. Not covered: a file that a process begins to write during the reading.

        Raises:
            StorageError: missing, damaged, of another kind, or written by a newer Ridgeline; Unmade: without a table.
        """
        return once_made(path, lambda: cls._opened_to_read(path, migrations, what))

    @classmethod
    def _opened_to_read(cls, path: Path, migrations: Sequence[Migration], what: Kind) -> Self:
        if not path.is_file():
            raise StorageError(f"{path}: no such {what}")
        with storage_errors(path):
            check_begins(path, what)
            connection = connect_read_only(path.resolve())
            with _closed_on_failure(connection) as rows:
                if _known_version(rows, path, migrations, create=False, what=what) < migrations[-1].number:
                    return cls(path, _migrated_copy(connection, migrations))
        return cls(path, rows)

    @classmethod
    def check_openable(cls, path: Path, migrations: Sequence[Migration], *, what: Kind) -> None:
        """Refuse a path that `open` with `create` would refuse, and write nothing.

        Raises:
            StorageError: as `open` does.
        """
        with storage_errors(path):
            check_begins(path, what)
            if path.is_file() and path.stat().st_size:
                with suppress(Unmade), closing(cls.open_read_only(path, migrations, what=what)) as database:
                    database.check()
            if path.exists():
                path.open("r+b").close()
            nearest = next(folder for folder in path.absolute().parents if folder.exists())
            with tempfile.TemporaryFile(dir=nearest):
                pass

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        with self._lock:
            self._rows.close()

    @contextmanager
    def write(self) -> Iterator[sqlite_utils.Database]:
        """Give the database inside one write transaction, committed on leaving and rolled back on an exception.

        BEGIN IMMEDIATE, so that two processes wait for one another at the start instead of failing half-way.

        Raises:
            StorageError: the disk refuses, or the file was removed or moved away: what is written would be lost.
        """
        self._file.check()
        with self._lock, storage_errors(self.path), _transaction(self._rows):
            yield self._rows

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every query until the end see one state of the file, also while others write to it.

        Other threads wait with their queries meanwhile; other processes do not.
        """
        with self._lock, storage_errors(self.path):
            self._rows.conn.execute("BEGIN")
            try:
                yield
            finally:
                self._rows.conn.execute("ROLLBACK")

    def query(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[dict[str, Any]]:
        """Return every row of a SELECT as a dict."""
        with self._lock, storage_errors(self.path):
            return list(self._rows.query(sql, parameters))

    def first(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> dict[str, Any] | None:
        """Return the first row of a SELECT, or None."""
        found = self.query(sql, parameters)
        return found[0] if found else None

    def value_of(self, text: str) -> Any:
        """Return the value of JSON text that was stored with `to_text`; StorageError when it is damaged."""
        try:
            value = json.loads(text)
            if "\\u" in text:
                to_text(value).encode()  # half of a surrogate pair, which no file and no terminal takes
        except (RecursionError, TypeError, ValueError) as error:  # TypeError: SQLite stores any type in any column
            raise StorageError(f"{self.path}: {damaged(f'a record is not JSON: {error}')}") from error
        return value

    def check(self) -> None:
        """Read the whole file; StorageError when it is damaged."""
        with self._lock, storage_errors(self.path):
            _check(self._rows)

    def copy_to(self, target: Path) -> None:
        """Write a compact, consistent copy of the file, also while others write to it; `target` must not exist."""
        # Not VACUUM INTO: on a read-only connection it fails for tables with generated columns (SQLite 3.40).
        with self._lock, storage_errors(target), closing(sqlite3.connect(target)) as copy:
            self._rows.conn.backup(copy)
            copy.execute("VACUUM")

    def leave_wal(self) -> None:
        """Fold the -wal and -shm companions into the file, so that it can be moved alone."""
        with self._lock, storage_errors(self.path):
            self._rows.disable_wal()


@contextmanager
def _transaction(rows: sqlite_utils.Database) -> Iterator[None]:
    rows.conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        rows.conn.execute("COMMIT")
    except BaseException:
        if rows.conn.in_transaction:
            rows.conn.execute("ROLLBACK")
        raise


def _migrated_copy(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> sqlite_utils.Database:
    with closing(connection):
        rows = sqlite_utils.Database(in_memory(connection), execute_plugins=False)
    _migrate(rows, migrations)
    rows.conn.execute("PRAGMA query_only=ON")
    return rows


@contextmanager
def _closed_on_failure(connection: sqlite3.Connection) -> Iterator[sqlite_utils.Database]:
    """Give the rows of a connection, which is closed where the block fails."""
    try:
        yield sqlite_utils.Database(connection, execute_plugins=False)
    except BaseException:
        connection.close()
        raise


def _prepare(
    rows: sqlite_utils.Database, path: Path, migrations: Sequence[Migration], *, create: bool, what: Kind
) -> None:
    version = _known_version(rows, path, migrations, create=create, what=what)
    if version:
        _check(rows)
    _enable_wal(rows)
    rows.conn.execute("PRAGMA synchronous=NORMAL")
    if version < migrations[-1].number:
        _migrate(rows, migrations)


def _check(rows: sqlite_utils.Database) -> None:
    if (damage := rows.conn.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(f"malformed: {str(damage).splitlines()[-1]}")


def _enable_wal(rows: sqlite_utils.Database) -> None:
    """Switch the file to write-ahead logging; retry while another process does the same.

    SQLite's busy timeout does not cover the switch: of two processes that switch at once, one fails immediately.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            rows.enable_wal()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in OCCUPIED or time.monotonic() > deadline:
                raise
            time.sleep(_OCCUPIED_WAIT_S)
        else:
            return


def _known_version(
    rows: sqlite_utils.Database, path: Path, migrations: Sequence[Migration], *, create: bool, what: Kind
) -> int:
    version, tables = _version(rows), rows.table_names()
    check_kind(path, what, tables)
    newest = migrations[-1].number
    if version > newest:
        raise StorageError(
            f"{path}: written by a newer Ridgeline (schema {version}, this one knows {newest}); "
            "upgrade Ridgeline to read it"
        )
    if version < 0:
        raise StorageError(f"{path}: {damaged(f'schema {version}')}")
    if version == 0 and tables:
        version = _version(rows)  # read again: another process may have made the tables meanwhile
    if version == 0 and (tables or not create):
        raise no_database_of(what, path) if tables else Unmade(path)
    if views := _tables_of(migrations) & {name.lower() for name in rows.view_names()}:
        raise StorageError(f"{path}: {damaged(f'{min(views)} is a view, not a table')}")  # it may be one without an end
    return version


def _tables_of(migrations: Sequence[Migration]) -> set[str]:
    """Return the names of the tables that the migrations make."""
    made = (_CREATES.match(statement) for migration in migrations for statement in migration.statements)
    return {found[1] for found in made if found is not None}


def _migrate(rows: sqlite_utils.Database, migrations: Sequence[Migration]) -> None:
    for migration in migrations:
        with _transaction(rows):
            if _version(rows) >= migration.number:  # read again inside the lock: another process may have done the step
                continue
            for statement in migration.statements:
                rows.conn.execute(statement)
            rows.conn.execute(f"PRAGMA user_version={migration.number}")


def _version(rows: sqlite_utils.Database) -> int:
    return int(rows.conn.execute("PRAGMA user_version").fetchone()[0])


def to_text(value: Any) -> str:
    """Return `value` as JSON text that SQLite's JSON functions read and that gives the same value back.

    Infinity is written as 1e999, which both sides read as infinity; NaN, which JSON cannot say, becomes null.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_mark_infinite(value), ensure_ascii=False, allow_nan=False)
        return text.replace(json.dumps("-" + _INFINITY), "-1e999").replace(json.dumps(_INFINITY), "1e999")


def _mark_infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _mark_infinite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_mark_infinite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("-" if value < 0 else "") + _INFINITY
    return value
