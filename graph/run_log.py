"""run.log: what happened in a run, one line an event, for the morning after."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class RunLog(logging.FileHandler):
    """A file that is opened by its first line; lines from before the run folder exists are dropped with it.

    The search makes its folder once nothing is wrong with its problem, so a mistake leaves none behind.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", delay=True)
        self._folder = path.parent

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        if self._folder.is_dir():
            super().emit(record)


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Append Ridgeline's log to `path` while the block runs."""
    handler = RunLog(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("ridgeline")
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
