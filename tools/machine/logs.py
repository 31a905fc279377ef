"""Loggers whose lines reach the log of the search that they belong to, whatever the host's logging is set to.

A library leaves levels and handlers to its host, and Python's loggers drop a line below the host's level before any
handler sees it. So Ridgeline's own loggers stand below those that `logging.getLogger` gives a host: what is logged goes to
the log of the search in whose context it is, and to the host's handlers where the host's levels let it through.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar

RUN_LOG: ContextVar[logging.Handler | None] = ContextVar("RUN_LOG", default=None)
"""The log of the search that runs in this context; tasks and `asyncio.to_thread` take it along."""


def logger_of(name: str) -> logging.Logger:
    """Return the logger of a module, `__name__`."""
    return _RunLogger(logging.getLogger(name))


class _RunLogger(logging.Logger):
    def __init__(self, of_host: logging.Logger) -> None:
        super().__init__(of_host.name)
        self._of_host = of_host

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802  # logging's name
        """Say whether a line of this level goes anywhere."""
        return (level >= logging.INFO and RUN_LOG.get() is not None) or self._of_host.isEnabledFor(level)

    def handle(self, record: logging.LogRecord) -> None:
        """Write a line to the search's log, and hand it to the host's logger where that one takes it."""
        log = RUN_LOG.get()
        if log is not None and record.levelno >= logging.INFO:
            log.handle(record)
        if self._of_host.isEnabledFor(record.levelno):
            self._of_host.handle(record)
