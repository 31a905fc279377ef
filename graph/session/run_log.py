"""run.log, the log of one run: one line an event."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

from ridgeline.checkpoints.storage.own_files import no_link_opener
from ridgeline.tools.errors import EngineError, RidgelineError
from ridgeline.tools.machine.logs import RUN_LOG, logger_of
from ridgeline.tools.machine.os_errors import LOG_FORMAT, is_users_to_mend
from ridgeline.tools.records.printable import printable

logger = logger_of("ridgeline")


class RunLog(logging.FileHandler):
    """A log file that its first line opens; lines are dropped while the run folder does not exist.

    The session makes the folder once the request is known to be valid, so that a mistake leaves no folder behind.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", delay=True)
        self._folder = path.parent

    def _open(self) -> TextIOWrapper:
        """Open the file, never through a link: somebody else may have made the run folder."""
        return open(self.baseFilename, "a", encoding="utf-8", opener=no_link_opener)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            if self._folder.is_dir():
                super().emit(record)
        except OSError:  # the file is a link
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        """Drop a line that a full disk or a link refuses: the error that ends the search reports the cause itself."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        """Close the file; lines that a full disk refuses are lost."""
        with contextlib.suppress(OSError):
            super().close()


class _Printable(logging.Formatter):
    """Makes lines that command no terminal: what is logged may come from models, files and other people's runs."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and its traceback's."""
        return printable(super().format(record), keeps="\n\t")


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Append what is logged in this context to `path`; the last lines are the error that ended the block.

    Raises:
        EngineError: the block raised an unexpected exception; the one line names the log that holds the traceback.
    """
    handler = RunLog(path)
    handler.setFormatter(_Printable(LOG_FORMAT))
    token = RUN_LOG.set(handler)
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        logger.critical("ended by %s: %s", type(error).__name__, error, exc_info=True)
        is_expected = isinstance(error, RidgelineError | KeyboardInterrupt | BrokenPipeError)
        is_users = isinstance(error, OSError) and is_users_to_mend(error, names_paths=True)
        if is_expected or is_users or not path.is_file():
            raise
        raise EngineError(f"{type(error).__name__}: {error}; the traceback is in {path}") from error
    finally:
        RUN_LOG.reset(token)
        handler.close()
