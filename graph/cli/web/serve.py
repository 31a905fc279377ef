"""`ridgeline show RUN --web`: the server in the foreground of a terminal, until a signal ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from ridgeline.graph.cli.web.pages import RunPages
from ridgeline.graph.cli.web.server import WebServer

_NICE = 10
"""The search that is looked at measures times here: what renders its page stands back."""


def serve_run(run: Path, port: int, tell: Callable[[str], None]) -> None:
    """Serve a run's page on the loopback device until SIGINT or SIGTERM; 0 takes a free port.

    Raises:
        InputError: the port is taken, or the run cannot be read.
    """
    os.nice(_NICE)
    pages = RunPages(run)
    pages.shown()  # a run that cannot be read is told here, not in the browser
    with WebServer(pages, port) as server:
        before = signal.signal(signal.SIGTERM, _end)
        try:
            tell(f"{server.url} shows {run} as it is, to programs of this machine; Ctrl-C ends it")
            with suppress(KeyboardInterrupt):
                server.serve_forever(poll_interval=0.2)
        finally:
            signal.signal(signal.SIGTERM, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
