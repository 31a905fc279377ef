"""A file that a process holds open for hours, and whether its path still leads to it."""

from __future__ import annotations

import os
from pathlib import Path

from ridgeline.tools.errors import FileLost


class OpenedFile:
    """The file that was at a path when it was opened."""

    def __init__(self, path: Path) -> None:
        """Remember the file at `path`, wherever the process works later on."""
        self._path = path
        self._place = os.path.abspath(path)
        self._facts = self._facts_now()

    def check(self) -> None:
        """Refuse a file that is at its path no more.

        Raises:
            FileLost: it was removed, moved, or replaced by another. What is written to it is lost with the process.
        """
        now = self._facts_now()
        if self._facts is None or now is None or not os.path.samestat(self._facts, now):
            raise FileLost(
                f"{self._path}: was removed, moved away or replaced while it was in use; "
                "put it back where it was, with its folder, or begin anew"
            )

    def _facts_now(self) -> os.stat_result | None:
        try:
            return os.stat(self._place)
        except OSError:
            return None
