"""The console that commands print through."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NoReturn

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ridgeline.tools.records.printable import printable

_UNBOUNDED = 1000
"""Columns of what is no terminal: wider than any line that a table makes."""


class _PipedConsole(Console):
    """Leaves a closed pipe to the command line; rich's own would end the process with exit code 1.

    No text commands the terminal: what is shown comes from models, files and other people's runs.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the parts of what is shown; rich's own commands are apart from its texts."""
        parts = (
            part if part.control else part._replace(text=printable(part.text, keeps="\n"))
            for part in super().render(renderable, options)
        )
        return parts if self.is_terminal else _without_blanks(parts)

    def on_broken_pipe(self) -> NoReturn:
        """Raise what the write raised."""
        raise BrokenPipeError


def make_console(*, stderr: bool = False) -> Console:
    """Return a console on standard output, or on standard error; a pipe or a file has no width that lines would end at."""
    console = _PipedConsole(stderr=stderr, highlight=False)
    columns = os.environ.get("COLUMNS", "")
    if not (columns.isdecimal() and int(columns)) and (not console.is_terminal or columns):
        console.width = _UNBOUNDED
    return console


def _without_blanks(parts: Iterable[Segment]) -> Iterator[Segment]:
    """Give the parts without the blanks that fill a line up to a table's width."""
    line: list[Segment] = []
    for part in parts:
        line.append(part)
        if part.text == "\n":
            yield from _shortened(line)
            line.clear()
    yield from line


def _shortened(line: list[Segment]) -> list[Segment]:
    *parts, end = line
    while parts and not parts[-1].control:
        last = parts.pop()
        if text := last.text.rstrip(" "):
            return [*parts, last._replace(text=text), end]
    return [*parts, end]
