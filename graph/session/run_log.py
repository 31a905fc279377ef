"""run.log: what happened in a run, one line an event, for the morning after."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

from ridgeline.checkpoints.own_files import no_link_opener
from ridgeline.tools.errors import EngineError, RidgelineError
from ridgeline.tools.machine.os_errors import LOG_FORMAT, is_users_to_mend


class RunLog(logging.FileHandler):
    """A file that is opened by its first line; lines from before the run folder exists are dropped with it.

    The search makes its folder once nothing is wrong with its problem, so a mistake leaves none behind.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", delay=True)
        self._folder = path.parent

    def _open(self) -> TextIOWrapper:
        """Open the file, never through a link: a run folder may be a stranger's."""
        return open(self.baseFilename, "a", encoding="utf-8", opener=no_link_opener)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            if self._folder.is_dir():
                super().emit(record)
        except OSError:  # of opening it: a link is there
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        """Drop a line that a full disk or a link refuses: what ends the search for it says so itself, in one line."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        """Close the file; what the disk would not take is lost."""
        with contextlib.suppress(OSError):
            super().close()


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Append Ridgeline's log to `path` while the block runs, last what ended it, with its traceback.

    Raises:
        EngineError: the block raised something that no one foresaw; one line that names the log, where there is one.
    """
    handler = RunLog(path)
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    root = logging.getLogger("ridgeline")
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        root.critical("ended by %s: %s", type(error).__name__, error, exc_info=True)
        is_expected = isinstance(error, RidgelineError | KeyboardInterrupt | BrokenPipeError)
        is_users = isinstance(error, OSError) and is_users_to_mend(error, names_paths=True)
        if is_expected or is_users or not path.is_file():
            raise
        raise EngineError(f"{type(error).__name__}: {error}; the traceback is in {path}") from error
    finally:
        root.removeHandler(handler)
        handler.close()
