"""The views of a running search: a live board on a terminal, plain lines elsewhere.

Both take the events of graph/search/events.py into a `Board`; only the drawing differs.
"""

from __future__ import annotations

import contextlib
import os
import re
import termios
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import IO, Any, Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ridgeline.graph.cli.view.board import Board, Branch
from ridgeline.graph.cli.view.event_lines import EventLines
from ridgeline.graph.cli.view.figures import (
    format_baselines,
    format_batched,
    format_behind,
    format_best,
    format_cost,
    format_floors,
    format_judged,
    format_left,
    format_requests,
    format_seconds,
)
from ridgeline.tools.machine.waits import describe_wait

STAGE_WORDS = {
    "write": "writing",
    "compile": "compiling",
    "mend": "mending",
    "verify": "verifying",
    "benchmark": "timing",
    "done": "done",
}
WARNING_SHOWN = 200
"""Characters of the newest warning on the board: three lines at 80 columns."""


class View(Protocol):
    """Something that shows a search."""

    def show(self, event: Mapping[str, Any]) -> None:
        """Take one event and show what it changes."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was found."""
        ...


class LiveView:
    """A board redrawn in place four times a second."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board = board
        with contextlib.ExitStack() as stack:
            stack.enter_context(quiet_terminal(console.file))
            live = Live(console=console, refresh_per_second=4, get_renderable=lambda: Drawing(board), transient=False)
            stack.callback(live.stop)
            live.start()
            self._close = stack.pop_all().close

    def show(self, event: Mapping[str, Any]) -> None:
        """Take one event; the board is redrawn on its own clock."""
        self._board.apply(event)

    def close(self) -> None:
        """Draw once more and give the terminal back."""
        self._close()


@contextlib.contextmanager
def quiet_terminal(stream: IO[str]) -> Iterator[None]:
    """Hide typed characters, `^C` too, on the terminal that `stream` writes to: they would shift a live board.

    NOFLSH stops the terminal from dropping half a drawn board at Ctrl-C. A process in the background changes nothing:
    the kernel stops a background process that sets the terminal's attributes.
    """
    try:
        terminal = stream.fileno()
        before = termios.tcgetattr(terminal)
    except (OSError, termios.error):  # a pipe, or a stream in memory
        yield
        return
    quiet = before.copy()
    quiet[3] = (before[3] & ~termios.ECHO) | termios.NOFLSH
    _set_terminal(terminal, quiet)
    try:
        yield
    finally:
        _set_terminal(terminal, before)


def _set_terminal(terminal: int, attributes: list[Any]) -> None:
    with contextlib.suppress(OSError, termios.error):  # the terminal is gone
        if os.tcgetpgrp(terminal) == os.getpgrp():
            termios.tcsetattr(terminal, termios.TCSANOW, attributes)


class PlainView:
    """Prints one line for each event that matters in a log, for pipes and files."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board, self._console = board, console
        self._lines = EventLines(board)

    def show(self, event: Mapping[str, Any]) -> None:
        """Print the event's line, if it has one."""
        if line := self._lines(event):
            stamp = f"[{format_seconds(self._board.elapsed_s()):>7}] "
            self._console.print(stamp + line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Nothing is held open."""


class Drawing:
    """The whole board in as many lines as the console has, the most important first."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the summary, then as many branches and earlier warnings as fit below it."""
        board = self._board
        parts: list[RenderableType] = [_summary(board)]
        frame = 4  # columns of border and padding
        used = len(console.render_lines(parts[0], options.update(width=max(1, options.max_width - frame)), pad=False))
        room = options.max_height - used - 3  # two borders, and the line that the cursor comes to rest on
        if board.branches:
            parts.append(_branches(board, room - 1))
        spare = room - (len(board.branches) + 1 if board.branches else 0)
        parts += [_warning(message) for message in board.warnings[-1 - max(0, min(2, spare)) : -1]]
        title = f"[bold]ridgeline[/] {board.problem} on {board.device}"
        yield Panel(Group(*parts), title=title, title_align="left")


def _warning(message: str) -> Text:
    return Text(f"warning: {' '.join(message.split())}", style="yellow", no_wrap=True, overflow="ellipsis")


def _summary(board: Board) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(ratio=1)
    table.add_row("now", Text(board.phase, no_wrap=True, overflow="ellipsis"))
    if board.waiting_for:
        label, _, rest = describe_wait(*board.waiting_for).partition(" ")
        table.add_row(label, Text(rest, style="yellow", no_wrap=True, overflow="ellipsis"))
    if board.requests:
        table.add_row("mailbox", Text(format_requests(board), style="yellow", no_wrap=True, overflow="ellipsis"))
    if board.batched:
        table.add_row("batch", Text(format_batched(board), style="yellow", no_wrap=True, overflow="ellipsis"))
    if board.stopping:
        table.add_row("stopping", Text(board.stopping, style="yellow"))
    if board.warnings:
        newest = " ".join(board.warnings[-1].split())
        table.add_row("warning", Text(newest[:WARNING_SHOWN] + "…" * (len(newest) > WARNING_SHOWN), style="yellow"))
    if board.notes:
        table.add_row("note", Text(" ".join(board.notes[-1].split()), style="dim"))
    table.add_row("PyTorch", format_baselines(board) or "measuring …")
    if board.floor_ms is not None:
        table.add_row("floor", format_floors(board))
    table.add_row("best", Text(format_best(board), style="bold green" if (board.best_speedup or 0) > 1 else ""))
    if behind := format_behind(board):
        table.add_row("", Text(behind, style="dim", no_wrap=True, overflow="ellipsis"))
    if board.max_rounds:
        table.add_row("rounds", ProgressBar(total=board.max_rounds, completed=board.rounds_over, width=30))
    table.add_row("time", format_seconds(board.elapsed_s()) + format_left(board))
    table.add_row("judged", f"{format_judged(board)}{format_cost(board)}")
    return table


def _branches(board: Board, rows: int) -> RenderableType:
    """Return at most `rows` lines of branches below a heading: running ones first, and a count of the others."""
    table = Table(box=None, pad_edge=False, expand=True, show_edge=False)
    table.add_column("branch", no_wrap=True, style="dim")
    table.add_column("idea", ratio=3, no_wrap=True, overflow="ellipsis")
    table.add_column("stage", no_wrap=True)
    table.add_column("outcome", ratio=2, no_wrap=True, overflow="ellipsis")
    timed = board.timed_branch()
    order = sorted(board.branches.items(), key=lambda item: (item[1].stage == "done", _in_order(item[0])))
    shown = order if len(order) <= rows else order[: max(0, rows - 1)]
    for name, branch in shown:
        outcome = Text(branch.outcome, style="green" if branch.is_correct else "red")
        stage = _stage(branch, is_timed=name == timed)
        repair = f" (repair {branch.attempt})" if branch.attempt and branch.stage != "done" else ""
        table.add_row(name, Text(board.ideas.get(branch.idea_id, "")), stage + repair, outcome)
    hidden = Counter(_stage(branch, is_timed=name == timed) for name, branch in order[len(shown) :])
    counted = ", ".join(f"{number} {stage}" for stage, number in hidden.items())
    more = Text(f"… and {hidden.total()} more: {counted}", style="dim", no_wrap=True, overflow="ellipsis")
    return Group(table, more) if hidden else table


def _stage(branch: Branch, *, is_timed: bool) -> str:
    return STAGE_WORDS.get(branch.stage, branch.stage) if is_timed or branch.stage != "benchmark" else "in line"


def _in_order(name: str) -> list[int]:
    """Return a branch's numbers, so that r1i2v0 comes before r1i10v0."""
    return [int(number) for number in re.findall(r"\d+", name)]
