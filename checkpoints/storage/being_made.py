"""A database that another process is making just now: whoever reads it waits for an instant."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ridgeline.tools.errors import StorageError

T = TypeVar("T")

MADE_WITHIN_S = 2.0
"""A database has its tables within milliseconds of its file; on a busy disk it takes longer."""
_LOOK_EVERY_S = 0.01


class Unmade(StorageError):
    """The file is there, and has no table yet."""

    def __init__(self, path: Path) -> None:
        """Say so of the file at `path`."""
        super().__init__(
            f"{path}: holds nothing yet: another process is making it, or was ended as it began; "
            "try again, and move it away where it stays so"
        )


def once_made(path: Path, opened: Callable[[], T]) -> T:
    """Return what `opened` gives, tried again as long as the file is new and unmade.

    Raises:
        Unmade: nothing has been written into the file for a while.
    """
    while True:
        try:
            return opened()
        except Unmade:
            if abs(time.time() - _written_at(path)) > MADE_WITHIN_S:  # it may be written between the two looks
                raise
        time.sleep(_LOOK_EVERY_S)


def _written_at(path: Path) -> float:
    """Return when the file or its log was written last."""
    times = [0.0]
    for name in (path.name, f"{path.name}-wal"):
        with suppress(OSError):
            times.append(path.with_name(name).stat().st_mtime)
    return max(times)
