"""Errors of SQLite and the disk as a StorageError of one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ridgeline.tools.errors import StorageError
from ridgeline.tools.wording import remedy_for, said_by

BUSY_TIMEOUT_S = 30.0

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_SIGNS = ("malformed", "decode", "no such column", "no such table", "already exists", "duplicate column name")
UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
OCCUPIED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an error of SQLite or the disk inside the block into a StorageError that names `path` and a remedy."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a programming error: a closed connection, a wrong number of parameters
    except sqlite3.IntegrityError:
        raise  # likewise
    except sqlite3.Error as error:
        raise StorageError(f"{path}: {_remedy(error)}") from error
    except UnicodeDecodeError as error:
        raise StorageError(f"{path}: {damaged(str(error))}") from error
    except OSError as error:
        why = said_by(error)
        raise StorageError(f"{path}: {why}; {remedy_for(why, 'check its disk and permissions')}") from error


_SPOILED = (
    *(ArithmeticError, AttributeError, KeyError, TypeError, ValueError),
    sqlite3.IntegrityError,
    NotImplementedError,  # LangGraph's, of a type of checkpoint that it does not know
)


@contextmanager
def record_errors(path: Path) -> Iterator[None]:
    """Turn what a stored record with a wrong value raises inside the block into a StorageError that names `path`.

    The block does nothing but read records, or copy them: an error of ours in it would be told as damage.
    """
    try:
        yield
    except _SPOILED as error:
        raise StorageError(f"{path}: {damaged(f'a record is spoiled: {error}')}") from error


def _remedy(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return "the disk is full; free some space and try again"
    if code in _DAMAGED or any(sign in str(error) for sign in _SIGNS):
        return damaged(str(error))
    if code in UNWRITABLE:
        return f"cannot be written ({error}); check the folder's permissions or choose another"
    if code in OCCUPIED:
        return f"another process has held the database for over {BUSY_TIMEOUT_S:.0f} s; end it and try again"
    if code == sqlite3.SQLITE_IOERR:
        causes = "it is not full or failing, and that no limit of a file's size (ulimit -f) is in the way"
        return f"the disk refuses ({error}); check that {causes}"
    return str(error)


def damaged(how: str) -> str:
    """Return the words for a file whose content cannot be read, with a remedy."""
    return f"the database is damaged ({how}); restore a copy or move it away"
