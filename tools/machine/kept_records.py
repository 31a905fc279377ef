"""Records kept in the cache or home folder, which are made anew when they are absent or damaged."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from ridgeline.tools.records.codec import Record

R = TypeVar("R", bound=Record)


def read_kept(path: Path, kind: type[R]) -> R | None:
    """Return the record kept at `path`; None when there is none, or nothing that reads as one."""
    try:
        with open_ordinary(path) as file:
            return kind.from_json(json.load(file))
    except (OSError, RecursionError, AttributeError, KeyError, TypeError, ValueError):
        return None


@contextmanager
def open_ordinary(path: Path) -> Iterator[BufferedReader]:
    """Give a regular file to read. A link is not followed, and no pipe is waited for.

    Raises:
        OSError: absent, unreadable, or something else than a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        yield file
