"""Files that are put in place whole, and what killed processes leave of such a file.

A file is written beside its place under a name of its own, `.NAME.RANDOM.part`, and renamed. Its writer holds a lock on
it until then. The lock ends with the process, however that ends, so an old file of such a name that nobody has locked is
of a process that is gone. Not covered: file systems without flock, where every such file stays.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_SUFFIX = ".part"
_RANDOM = "[a-z0-9_]{8}"
"""What tempfile puts between prefix and suffix."""
LEFT_AFTER_S = 3600.0
"""A file is written in seconds; one that is younger may be of a process on a machine whose locks are not seen here."""


@contextlib.contextmanager
def whole_file(path: Path, *, mode: int = 0o600) -> Iterator[IO[str]]:
    """Give a file that takes the place of `path` when the block ends; nothing is left of one that fails.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    descriptor, temporary = _begun(path)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            os.fchmod(descriptor, mode)
            os.replace(temporary, path)  # while the lock is held
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes of this user left of files of `folder`, or of its file `name` alone, long ago.

    What cannot be removed, or is in any doubt, stays.
    """
    known = re.compile(rf"\.{'.+' if name is None else re.escape(name)}\.{_RANDOM}{re.escape(_SUFFIX)}", re.DOTALL)
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            if known.fullmatch(entry):
                with contextlib.suppress(OSError):
                    _remove_left(folder / entry)


def _begun(path: Path) -> tuple[int, str]:
    """Return the descriptor and the path of a new file that is locked."""
    while True:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_SUFFIX)
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, temporary
        os.close(descriptor)  # whoever cleans up took it before it was locked, as after a long stop


def _remove_left(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(descriptor)
        is_own = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
        if not is_own or time.time() - facts.st_mtime < LEFT_AFTER_S:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(descriptor, path):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path | str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
