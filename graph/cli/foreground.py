"""Run one search in the foreground of a terminal: announce it, show it, stop it at a signal, say how it ended."""

from __future__ import annotations

import asyncio
import contextvars
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.report.wording import ending
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.graph.cli.estimate import search_estimate, tariffs_of
from ridgeline.graph.cli.request import home_warning
from ridgeline.graph.cli.summary import closing_lines, resume_command, resume_line
from ridgeline.graph.cli.view.board import Board
from ridgeline.graph.cli.view.progress import LiveView, PlainView, View
from ridgeline.graph.cli.view.recalled import recall
from ridgeline.graph.session.session import run_resolved
from ridgeline.tools.errors import EngineError, FileLost, ModelError, SearchCut, StorageError, UncoveredError
from ridgeline.tools.machine.logs import logger_of

if TYPE_CHECKING:
    from langgraph.runtime import RunControl
    from rich.console import Console

    from ridgeline.graph.session.options import ResolvedSearch
    from ridgeline.graph.session.outputs import SearchResult

logger = logger_of(__name__)

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
"""The signals that end a search, and the exit code of each: 128 + its number, as shells report it."""

AT_ONCE = "stopped at once"

UNNAMED = (
    "no model was named: the offline model composes kernels where it covers the problem (--model openai:o3 needs a key)"
)
"""Said before the problem is described, so that nobody knows yet whether the offline model covers it."""


@dataclass(slots=True, kw_only=True)
class StopSignal:
    """The signal that asked for an end, if any."""

    number: int | None = None

    def exit_code(self) -> int | None:
        """Return the exit code of a process that this signal ended; None without a signal."""
        return None if self.number is None else SIGNALS[signal.Signals(self.number)]


@dataclass(slots=True, kw_only=True)
class _Reader:
    """The reader of a search's view; one that goes away cuts the search short, as a second signal does."""

    view: View
    cut_short: Callable[[], object]
    gone: BrokenPipeError | None = None

    def show(self, event: Mapping[str, Any]) -> None:
        """Show an event to a reader who is there."""
        if self.gone is not None:
            return
        try:
            self.view.show(event)
        except BrokenPipeError as error:
            logger.info("the reader of the output went away: %s", AT_ONCE)
            self.gone = error
            self.cut_short()


def run_shown(
    console: Console, search: ResolvedSearch, *, warnings: Sequence[str] = (), is_plain: bool
) -> tuple[SearchResult | None, StopSignal]:
    """Run a search in view of the user and say how it ended; the result is None when a second signal cut it short.

    Raises:
        BrokenPipeError: the reader of the output went away; the search is stopped at once, and can be resumed.
    """
    _announce(console, search)
    for warning in [*warnings, *home_warning(search)]:
        _print(console, warning)
    board = Board(
        problem=search.problem.name, device=search.device, models=search.model_names, replays_times=search.replays_times
    )
    if search.resume:
        _tell_resumed(console, board, search.run_dir)
    stop = StopSignal()
    with ExitStack() as stack:
        view = _view(board, console, is_plain=is_plain)
        stack.callback(view.close)
        early = stack.enter_context(_noted_signals())
        with _resumption_told(console, search.run_dir):
            result = asyncio.run(_run(search, view, stop, early))
        if result:
            board.settle(ending(result.state, result.reason), result.best, result.certificate_ms)
        else:
            board.settle(AT_ONCE)
    for line in closing_lines(result, search.budget) if result else _cut_short_lines(search.run_dir):
        _print(console, line)
    return result, stop


@contextmanager
def _resumption_told(console: Console, run_dir: Path) -> Iterator[None]:
    """Say how the search goes on where its provider or the machine ends it: a full disk, a judge that died.

    Raises:
        SearchCut: what ended it is the user's to mend.
    """
    try:
        yield
    except UncoveredError:
        raise  # no other try would cover the problem
    except (EngineError, ModelError, StorageError) as error:
        is_kept = (run_dir / FILE_NAME).is_file()
        if is_kept:
            _print(console, f"what had ended is stored; once that is mended, resume:  {resume_command(run_dir)}")
        if not isinstance(error, EngineError) and (is_kept or isinstance(error, FileLost)):
            raise SearchCut(str(error)) from error
        raise


@contextmanager
def _noted_signals() -> Iterator[list[int]]:
    """Give the signals that come before the loop handles them; one that interrupts its making leaves half a loop."""
    noted: list[int] = []
    before = {number: signal.signal(number, lambda received, _: noted.append(received)) for number in SIGNALS}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _run(search: ResolvedSearch, view: View, stop: StopSignal, early: Sequence[int]) -> SearchResult | None:
    """Run the search; None when a second signal cut it short (it can be resumed all the same).

    Raises:
        BrokenPipeError: the reader of the view went away, which cuts the search short too.
    """
    from langgraph.runtime import RunControl

    def cut_short() -> None:
        running.cancel()

    control = RunControl()
    reader = _Reader(view=view, cut_short=cut_short)
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    running = loop.create_task(run_resolved(search, on_event=reader.show, stop=control), context=context)
    handlers = {int(number): _on_signal(number, stop, control, reader, context) for number in SIGNALS}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    for number in early:
        handlers[number]()
    try:
        return await running
    except asyncio.CancelledError:
        if reader.gone is not None:
            raise reader.gone from None
        if stop.number is None:
            raise
        return None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _on_signal(
    number: int, stop: StopSignal, control: RunControl, reader: _Reader, context: contextvars.Context
) -> Callable[[], None]:
    """Return the handler: the first signal lets running steps end, the second does not wait for them."""

    def handle() -> None:
        if stop.number is not None:
            reader.cut_short()
            return
        stop.number = number
        name = signal.Signals(number).name
        context.run(logger.info, "%s: stopping after the steps in flight", name)  # into the search's log
        reason = f"{name}: stopping after the steps in flight (again: now)"
        reader.show({"event": "stopped", "outcome": "stopping", "reason": reason})
        control.request_drain(name)

    return handle


# ------------------------------------------------------------------------------------------------------ what is shown


def _announce(console: Console, search: ResolvedSearch) -> None:
    verb = "going on with" if search.resume else "searching"
    names = search.model_names
    answers = "the recorded answers of " if search.replay else ""
    _print(console, f"{verb} {search.problem.name} on {search.device} with {answers}{', '.join(names)}")
    _print(console, f"run folder {search.run_dir}")
    if search.replays_times:
        _print(console, "every time is the recorded one: nothing is built or run")
    elif not search.resume:
        _print(console, "first the reference is described, and eager PyTorch and the roofline floor are timed")
    if not search.resume and any(tariff.price is not None for tariff in tariffs_of(search)):
        for line in search_estimate(search):
            _print(console, line)
    if search.composes_alone and not (search.is_model_named or search.resume):
        _print(console, UNNAMED)


def _tell_resumed(console: Console, board: Board, run_dir: Path) -> None:
    """Say what a resumed search finds done, and fill its board with it."""
    with Archive.open_read_only(run_dir) as archive, record_errors(archive.path):
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
