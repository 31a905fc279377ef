"""Run one search in the foreground of a terminal: announce it, show it, stop it at a signal, say how it ended."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.result import STATE_WORDS
from ridgeline.graph.cli.summary import closing_lines, resume_command, resume_line
from ridgeline.graph.cli.view.board import Board, recall
from ridgeline.graph.cli.view.progress import LiveView, PlainView, View
from ridgeline.graph.models.registry import OFFLINE
from ridgeline.graph.session.run_log import log_to
from ridgeline.graph.session.session import run_resolved

if TYPE_CHECKING:
    from langgraph.runtime import RunControl
    from rich.console import Console

    from ridgeline.graph.session.options import ResolvedSearch
    from ridgeline.graph.session.outputs import SearchResult

logger = logging.getLogger(__name__)

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
"""The signals that end a search, and the exit code of each: 128 + its number, as shells report it."""

AT_ONCE = "stopped at once"


@dataclass(slots=True, kw_only=True)
class Stop:
    """The signal that asked for an end, if any."""

    number: int | None = None

    def exit_code(self) -> int | None:
        """Return the exit code of a process that this signal ended; None without a signal."""
        return None if self.number is None else SIGNALS[signal.Signals(self.number)]


def run_shown(
    console: Console, search: ResolvedSearch, *, warnings: Sequence[str] = (), is_plain: bool
) -> tuple[SearchResult | None, Stop]:
    """Run a search in view of the user and say how it ended; the result is None when a second signal cut it short."""
    _announce(console, search)
    for warning in warnings:
        _print(console, warning)
    board = Board(problem=search.problem.name, device=search.device, models=search.model_names)
    if search.resume:
        _tell_resumed(console, board, search.run_dir)
    stop = Stop()
    with ExitStack() as stack:
        stack.enter_context(log_to(search.run_dir / "run.log"))
        view = _view(board, console, is_plain=is_plain)
        stack.callback(view.close)
        result = asyncio.run(_run(search, view, stop))
        if stop.number is not None:
            board.settle(STATE_WORDS.get(result.state, result.state) if result else AT_ONCE)
    for line in closing_lines(result) if result else _cut_short_lines(search.run_dir):
        _print(console, line)
    return result, stop


async def _run(search: ResolvedSearch, view: View, stop: Stop) -> SearchResult | None:
    """Run the search; None when a second signal cut it short (it can be resumed all the same)."""
    from langgraph.runtime import RunControl

    control = RunControl()
    running = asyncio.ensure_future(run_resolved(search, on_event=view.show, stop=control))
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, _on_signal(number, stop, control, view, running.cancel))
    try:
        return await running
    except asyncio.CancelledError:
        if stop.number is None:
            raise
        return None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _on_signal(
    number: int, stop: Stop, control: RunControl, view: View, cut_short: Callable[[], object]
) -> Callable[[], None]:
    """Return the handler: the first signal lets running steps end, the second does not wait for them."""

    def handle() -> None:
        if stop.number is not None:
            cut_short()
            return
        stop.number = number
        name = signal.Signals(number).name
        logger.info("%s: stopping after the steps in flight", name)
        reason = f"{name}: stopping after the steps in flight (again: now)"
        view.show({"event": "stopped", "outcome": "stopping", "reason": reason})
        control.request_drain(name)

    return handle


# ------------------------------------------------------------------------------------------------------ what is shown


def _announce(console: Console, search: ResolvedSearch) -> None:
    verb = "going on with" if search.resume else "searching"
    names = search.model_names
    _print(console, f"{verb} {search.problem.name} on {search.device} with {', '.join(names)}")
    _print(console, f"run folder {search.run_dir}")
    if names == (OFFLINE,) and not (search.is_model_named or search.resume):
        _print(console, "no model was named: the offline model composes kernels itself (--model openai:o3 needs a key)")


def _tell_resumed(console: Console, board: Board, run_dir: Path) -> None:
    """Say what a resumed search finds done, and fill its board with it."""
    with Archive.open_read_only(run_dir) as archive:
        _print(console, resume_line(archive))
        recall(board, archive)


def _view(board: Board, console: Console, *, is_plain: bool) -> View:
    is_live = console.is_terminal and not console.is_dumb_terminal and not is_plain
    return LiveView(board, console) if is_live else PlainView(board, console)


def _cut_short_lines(run_dir: Path) -> list[str]:
    """Return the last lines of a run that a second signal ended; a run that stored nothing yet cannot be resumed."""
    said = f"{AT_ONCE}: the steps in flight are lost, what had ended before is stored"
    is_stored = (run_dir / FILE_NAME).is_file()
    return ["", said, f"resume:  {resume_command(run_dir)}"] if is_stored else ["", AT_ONCE]


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)
