"""The kinds of database, told apart by their tables: their schemas' numbers say nothing of the kind."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from enum import StrEnum
from pathlib import Path

from ridgeline.checkpoints.storage.errors import storage_errors
from ridgeline.tools.errors import StorageError

_FIRST_BYTES = b"SQLite format 3\0"  # https://www.sqlite.org/fileformat.html


class Kind(StrEnum):
    """A kind of database, as messages name it."""

    ARCHIVE = "archive"
    BANK = "seed bank"


_TABLES = {"runs": Kind.ARCHIVE, "kernels": Kind.BANK}
"""A table that each kind has had from its first schema on, and no other kind has."""


def is_database(file: Path) -> bool:
    """Return whether a file begins as SQLite's do."""
    with storage_errors(file), file.open("rb") as opened:
        return opened.read(len(_FIRST_BYTES)) == _FIRST_BYTES


def kind_by_tables(tables: Iterable[str]) -> Kind | None:
    """Return the kind of database that has these tables, or None."""
    return next((kind for table in tables if (kind := _TABLES.get(table))), None)


def kind_of(file: Path) -> Kind | None:
    """Return the kind of a file, which is not changed; None when it is no database of Ridgeline's, or damaged."""
    with suppress(OSError, sqlite3.Error):
        uri = f"{file.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return kind_by_tables(name for (name,) in connection.execute("SELECT name FROM sqlite_master"))
    return None


def check_kind(path: Path, what: Kind, tables: Iterable[str]) -> None:
    """Raise StorageError when a database with these tables is of another kind; one of an unknown kind passes."""
    found = kind_by_tables(tables)
    if found is not None and found != what:
        raise StorageError(f"{path}: is a Ridgeline {found}, not a Ridgeline {what}; name another file")


def check_begins(path: Path, what: Kind) -> None:
    """Refuse a folder, and a file that does not begin as a database; a missing or an empty one may become one.

    Raises:
        StorageError: as said.
    """
    if path.is_dir():
        raise StorageError(f"{path}: is a folder, not a Ridgeline {what}; name a file")
    if path.is_file() and path.stat().st_size and not is_database(path):
        raise no_database_of(what, path)


def no_database_of(what: Kind, path: Path) -> StorageError:
    """Return the error of a file that is none of Ridgeline's."""
    return StorageError(f"{path}: not a Ridgeline {what}; name another file or move this one away")
