"""Files and folders that are put in place whole, and what killed processes leave of them.

A file is written beside its place under a name of its own, `.NAME.RANDOM.part`, and renamed. Its writer holds a lock on
it until then. The lock ends with the process, however that ends, so an old file of such a name that nobody has locked is
of a process that is gone. So it is with a folder. Not covered: file systems without flock, where all of these stay.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypeVar

P = TypeVar("P", str, Path)

_SUFFIX = ".part"
_RANDOM = "[a-z0-9_]{8}"
"""What tempfile puts between prefix and suffix."""
LEFT_AFTER_S = 3600.0
"""A file is written in seconds; one that is younger may be of a process on a machine whose locks are not seen here."""


@contextlib.contextmanager
def whole_file(path: Path, *, mode: int = 0o600) -> Iterator[IO[str]]:
    """Give a file that takes the place of `path` when the block ends; nothing is left of one that fails.

    A byte of a path that is no text is written as JSON escapes it, and a JSON file gives it back.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    descriptor, temporary = _begun(path, _make_file)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            os.fchmod(descriptor, mode)
            os.replace(temporary, path)  # while the lock is held
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def draft_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder beside `path`, to write in it what `path` gets by a rename; what is not renamed goes.

    What killed processes left of such folders goes first.

    Raises:
        OSError: the folder cannot be made.
    """
    _remove_left_of(path.parent, path.name, is_kind=stat.S_ISDIR)
    descriptor, draft = _begun(path, _make_folder)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # while the lock is held
        os.close(descriptor)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes of this user left of files of `folder`, or of its file `name` alone, long ago.

    What cannot be removed, or is in any doubt, stays.
    """
    _remove_left_of(folder, name, is_kind=stat.S_ISREG)


def _remove_left_of(folder: Path, name: str | None, *, is_kind: Callable[[int], bool]) -> None:
    known = re.compile(rf"\.{'.+' if name is None else re.escape(name)}\.{_RANDOM}{re.escape(_SUFFIX)}", re.DOTALL)
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            if known.fullmatch(entry):
                with contextlib.suppress(OSError):
                    _remove_left(folder / entry, is_kind)


def _make_file(path: Path) -> tuple[int, str]:
    return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_SUFFIX)


def _make_folder(path: Path) -> tuple[int, Path]:
    draft = tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=_SUFFIX)
    return os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC), Path(draft)


def _begun(path: Path, make: Callable[[Path], tuple[int, P]]) -> tuple[int, P]:
    """Return the descriptor and the path of a new file or folder that is locked."""
    while True:
        descriptor, temporary = make(path)
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_at(descriptor, temporary):
            return descriptor, temporary
        os.close(descriptor)  # whoever cleans up took it before it was locked, as after a long stop


def _remove_left(path: Path, is_kind: Callable[[int], bool]) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(descriptor)
        is_own = is_kind(facts.st_mode) and facts.st_uid == os.geteuid()
        if not is_own or time.time() - facts.st_mtime < LEFT_AFTER_S:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(descriptor, path):
            return
        if stat.S_ISDIR(facts.st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path | str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
