"""The console that commands print through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ridgeline.tools.records.printable import printable


class _PipedConsole(Console):
    """Leaves a closed pipe to the command line; rich's own would end the process with exit code 1.

    No text commands the terminal: what is shown comes from models, files and other people's runs.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the parts of what is shown; rich's own commands are apart from its texts."""
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=printable(part.text, keeps="\n"))

    def on_broken_pipe(self) -> NoReturn:
        """Raise what the write raised."""
        raise BrokenPipeError


def make_console(*, stderr: bool = False) -> Console:
    """Return a console on standard output, or on standard error."""
    return _PipedConsole(stderr=stderr, highlight=False)
