"""The console that commands print through."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class _PipedConsole(Console):
    """Leaves a closed pipe to the command line; rich's own would end the process with exit code 1."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise what the write raised."""
        raise BrokenPipeError


def make_console(*, stderr: bool = False) -> Console:
    """Return a console on standard output, or on standard error."""
    return _PipedConsole(stderr=stderr, highlight=False)
