"""What a person sees while a search runs: a live board on a terminal, plain lines elsewhere.

Both read the same events (graph/events.py) into the same `Board`; only the drawing differs.
"""

from __future__ import annotations

import contextlib
import os
import re
import termios
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ridgeline.checkpoints.journal import Journal
from ridgeline.graph.elites import SEARCHED, read_standings
from ridgeline.tools.records import Status

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive

BARS = "▁▂▃▄▅▆▇█"
STAGE_WORDS = {"write": "writing", "compile": "compiling", "verify": "verifying", "benchmark": "timing", "done": "done"}
WARNING_SHOWN = 200
"""Characters of the newest warning on the board: three lines at 80 columns."""


@dataclass(slots=True, kw_only=True)
class Branch:
    """One branch of the current round, as far as its events tell."""

    idea_id: str
    stage: str = "write"
    attempt: int = 0
    model: str = ""
    outcome: str = ""
    since: int = 0  # place among all branches' steps: the lower began its step earlier


@dataclass(slots=True, kw_only=True)
class Board:
    """Everything the views show, kept up to date by `apply`."""

    problem: str
    device: str
    models: tuple[str, ...]
    clock: Callable[[], float] = time.monotonic
    began_at: float = 0.0
    phase: str = "measuring the reference"
    baselines_ms: dict[str, float | None] = field(default_factory=dict)
    floor_ms: float | None = None
    bound: str = ""
    round: int = 0
    max_rounds: int = 0
    rounds_over: int = 0
    round_s: list[float] = field(default_factory=list)  # what each finished round took
    round_at: float = 0.0  # when the current round began, or the session when that is later
    ideas: dict[str, str] = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)
    steps_begun: int = 0
    best_id: str | None = None
    best_speedup: float | None = None
    best_ms: float | None = None
    idea_by_candidate: dict[str, str] = field(default_factory=dict)
    history: dict[int, float] = field(default_factory=dict)  # best speedup by round
    verdicts: dict[str, bool] = field(default_factory=dict)  # is_correct by candidate
    tokens: int = 0
    usd: float = 0.0
    warnings: list[str] = field(default_factory=list)
    stopping: str = ""  # that a stop was asked for and how to hasten it, until the search has stopped

    def __post_init__(self) -> None:
        self.began_at = self.round_at = self.clock()

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take one event in; events this version does not know are left alone."""
        handler = getattr(self, f"_on_{event['event']}", None)
        if handler is not None:
            handler(event)

    def elapsed_s(self) -> float:
        """Return the seconds since the search's process began."""
        return self.clock() - self.began_at

    def left_s(self) -> float | None:
        """Return a guess at the seconds left, from the rounds that are over; None before the first is."""
        if not self.round_s:
            return None
        usual_s = sum(self.round_s) / len(self.round_s)
        todo = self.max_rounds - self.rounds_over
        return max(0.0, usual_s - (self.clock() - self.round_at)) + usual_s * (todo - 1) if todo > 0 else 0.0

    def timed_branch(self) -> str | None:
        """Return the branch that has the timing slot: the first that asked; the others wait in line."""
        asking = [(branch.since, name) for name, branch in self.branches.items() if branch.stage == "benchmark"]
        return min(asking)[1] if asking else None

    def settle(self, words: str) -> None:
        """Say how a search ended that was asked to stop."""
        self.phase, self.stopping = words, ""

    def best_of_torch(self) -> tuple[str, float] | None:
        """Return the name and milliseconds of the fastest baseline that ran."""
        ran = [(ms, name) for name, ms in self.baselines_ms.items() if ms is not None]
        return (min(ran)[1], min(ran)[0]) if ran else None

    def _on_baseline(self, event: Mapping[str, Any]) -> None:
        self.baselines_ms = dict(event["baselines_ms"])
        self.floor_ms, self.bound = event["floor_ms"], event["bound"]
        self.phase = "judging the seed kernels"

    def _on_round_started(self, event: Mapping[str, Any]) -> None:
        self.round, self.max_rounds = event["round"], event["max_rounds"]
        self.branches.clear()
        self.phase = f"round {self.round} of {self.max_rounds}"
        self.round_at = self.clock()

    def _on_idea(self, event: Mapping[str, Any]) -> None:
        self.ideas[event["idea_id"]] = event["title"]

    def _on_branch_stage(self, event: Mapping[str, Any]) -> None:
        name = event["branch"]
        branch = self.branches.setdefault(name, Branch(idea_id=event["idea_id"]))
        branch.stage, branch.attempt = event["stage"], event["attempt"]
        branch.model = event["model"] or branch.model
        self.steps_begun += 1
        branch.since = self.steps_begun

    def _on_candidate_done(self, event: Mapping[str, Any]) -> None:
        is_correct = event["status"] == "ok" and event["speedup"] is not None
        self.verdicts[event["candidate_id"]] = is_correct
        if event["idea_id"]:
            self.idea_by_candidate[event["candidate_id"]] = event["idea_id"]
        if branch := self.branches.get(event["branch"]):
            branch.stage, branch.outcome = "done", describe_outcome(event)  # a repair begins it again
        if is_correct and (self.best_speedup is None or event["speedup"] > self.best_speedup):
            self._set_best(event["candidate_id"], event["speedup"], event["median_ms"])

    def _on_round_done(self, event: Mapping[str, Any]) -> None:
        self.tokens, self.usd = event["tokens"], event["usd"]
        self.round_s.append(self.clock() - self.round_at)
        self.rounds_over, self.round_at = event["round"], self.clock()
        if event["best_speedup"] is not None:
            self._set_best(event["best_id"], event["best_speedup"], event["best_median_ms"])
            self.history[event["round"]] = event["best_speedup"]

    def _on_tune(self, event: Mapping[str, Any]) -> None:
        self.phase = f"round {self.round} of {self.max_rounds}: tuning, {event['trial']} of {event['trials']}"
        if event["speedup"] is not None and event["speedup"] > (self.best_speedup or 0):
            self._set_best(event["candidate_id"], event["speedup"], None)

    def _on_certify(self, event: Mapping[str, Any]) -> None:
        self.phase = f"certifying {event['candidate_id']}: {event['step']}"

    def _on_stopped(self, event: Mapping[str, Any]) -> None:
        if event["outcome"] == "stopping":
            self.stopping = event["reason"]
        else:
            self.phase = describe_stop(event, self)

    def _on_warning(self, event: Mapping[str, Any]) -> None:
        self.warnings.append(event["message"])

    def _set_best(self, candidate_id: str | None, speedup: float, median_ms: float | None) -> None:
        self.best_id, self.best_speedup = candidate_id, speedup
        self.best_ms = median_ms


def recall(board: Board, archive: Archive) -> None:
    """Fill a resumed search's board with what its archive holds; the events of this session go on from there."""
    totals, rounds = Journal(archive).totals(), archive.rounds()
    board.tokens, board.usd = int(totals["input_tokens"]) + int(totals["output_tokens"]), float(totals["usd"])
    board.ideas = {idea.id: idea.title for idea in archive.ideas()}
    board.idea_by_candidate = {c.id: c.idea_id for c in archive.candidates() if c.idea_id}
    for found in archive.evaluations():
        if found.purpose in SEARCHED:
            board.verdicts[found.candidate_id] = found.status is Status.OK and found.speedup is not None
    for best in read_standings(archive)[:1]:
        board._set_best(best.candidate.id, best.speedup, best.median_ms)  # noqa: SLF001 - this module's own
    board.history = {entry["round"]: entry["best_speedup"] for entry in rounds if entry["best_speedup"] is not None}
    ends_s = [0.0, *(float(entry.get("wall_s", 0.0)) for entry in rounds)]
    board.round_s = [end_s - begin_s for begin_s, end_s in pairwise(ends_s)]
    _recall_place(board, archive, rounds_over=len(rounds))


def _recall_place(board: Board, archive: Archive, *, rounds_over: int) -> None:
    """Set where the search is: what it measured of PyTorch, and its round."""
    if baselines := archive.baselines():
        board.baselines_ms = {entry.name: entry.median_ms for entry in baselines.entries}
        board.floor_ms, board.bound = baselines.floor.floor_ms, baselines.floor.bound
        board.phase = "judging the seed kernels"
    board.rounds_over = rounds_over
    board.round = max([rounds_over, *(idea.round for idea in archive.ideas())])
    board.max_rounds = max(board.round, int(archive.run().get("settings", {}).get("rounds", 0)))
    if board.round:
        verb = "after" if board.round == rounds_over else "going on with"
        board.phase = f"{verb} round {board.round} of {board.max_rounds}"


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
    """Keep what is typed, `^C` too, off the terminal that `stream` writes to: it would push a live board about.

    NOFLSH keeps the terminal from throwing away half a drawn board at Ctrl-C. A process in the background leaves the
    terminal alone: it is another's then, and to touch it would stop this one.
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
    """One line for each event that a log's reader wants, for pipes and files."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board, self._console = board, console

    def show(self, event: Mapping[str, Any]) -> None:
        """Print the event's line, if it has one."""
        self._board.apply(event)
        line = plain_line(event, self._board)
        if line:
            stamp = f"[{format_seconds(self._board.elapsed_s()):>7}] "
            self._console.print(stamp + line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Nothing is held open."""


def plain_line(event: Mapping[str, Any], board: Board) -> str:
    """Return one line of plain text for an event, or "" for those that only the live board shows."""
    match event["event"]:
        case "baseline":
            return f"PyTorch: {format_baselines(board)}; floor {event['floor_ms']:.3f} ms ({event['bound']}-bound)"
        case "round_started":
            counted = f"{_count(event['ideas'], 'idea')}, {_count(event['branches'], 'branch')}"
            return f"round {event['round']}/{event['max_rounds']}: {counted}"
        case "idea":
            return f"  idea {event['idea_id']}: {event['title']}  [{event['category']}; {event['model']}]"
        case "candidate_done":
            return f"  {event['candidate_id']:<12} {describe_outcome(event)}"
        case "round_done":
            return f"round {event['round']} done: best {format_best(board)}{format_cost(board)}{format_left(board)}"
        case "certify":
            mark = {None: "…", True: "passed", False: "FAILED"}[event["passed"]]
            detail = f" ({event['detail']})" if event.get("detail") else ""
            return f"certify {event['candidate_id']}: {event['step']} {mark}{detail}"
        case "stopped":
            return describe_stop(event, board)
        case "warning":
            return f"warning: {event['message']}"
    return ""


class Drawing:
    """The whole board in as many lines as the console has; what matters most stands first."""

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
    if board.stopping:
        table.add_row("", Text(board.stopping, style="yellow"))
    if board.warnings:
        newest = " ".join(board.warnings[-1].split())
        table.add_row("warning", Text(newest[:WARNING_SHOWN] + "…" * (len(newest) > WARNING_SHOWN), style="yellow"))
    table.add_row("PyTorch", format_baselines(board) or "measuring …")
    if board.floor_ms is not None:
        table.add_row("floor", f"{board.floor_ms:.3f} ms ({board.bound}-bound)")
    table.add_row("best", Text(format_best(board), style="bold green" if (board.best_speedup or 0) > 1 else ""))
    if board.max_rounds:
        table.add_row("rounds", ProgressBar(total=board.max_rounds, completed=board.rounds_over, width=30))
    table.add_row("time", format_seconds(board.elapsed_s()) + format_left(board))
    judged = f"{_count(len(board.verdicts), 'kernel')}, {sum(board.verdicts.values())} correct{format_cost(board)}"
    table.add_row("judged", judged)
    return table


def _branches(board: Board, rows: int) -> RenderableType:
    """Return at most `rows` lines of branches under their titles, those at work first, the rest counted."""
    table = Table(box=None, pad_edge=False, expand=True, show_edge=False)
    table.add_column("branch", no_wrap=True, style="dim")
    table.add_column("idea", ratio=3, no_wrap=True, overflow="ellipsis")
    table.add_column("stage", no_wrap=True)
    table.add_column("outcome", ratio=2, no_wrap=True, overflow="ellipsis")
    timed = board.timed_branch()
    order = sorted(board.branches.items(), key=lambda item: (item[1].stage == "done", _in_order(item[0])))
    shown = order if len(order) <= rows else order[: max(0, rows - 1)]
    for name, branch in shown:
        good = branch.outcome.startswith("ok")
        outcome = Text(branch.outcome, style="green" if good else "red")
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


def describe_outcome(event: Mapping[str, Any]) -> str:
    """Return a finished candidate's outcome in a few words."""
    if event["status"] == "ok" and event["speedup"] is not None:
        median = f" ({event['median_ms']:.3f} ms)" if event["median_ms"] is not None else ""
        return f"ok {event['speedup']:.2f}x eager{median}"
    return f"{event['status']}: {' '.join(str(event['reason']).split())[:160]}"


def describe_stop(event: Mapping[str, Any], board: Board) -> str:
    """Return why a search ends; once it was asked to stop, it has not `finished` whatever the rounds say."""
    return str(event["reason"]) if board.stopping else f"{event['outcome']}: {event['reason']}"


def format_baselines(board: Board) -> str:
    """Return every baseline's time in one line."""
    return ", ".join(
        f"{name.replace('_', ' ')} {ms:.3f} ms" if ms is not None else f"{name.replace('_', ' ')} failed"
        for name, ms in board.baselines_ms.items()
    )


def format_best(board: Board) -> str:
    """Return the best kernel so far against eager, the best baseline and the floor."""
    if board.best_speedup is None:
        return "none yet"
    text = f"{board.best_speedup:.2f}x eager"
    fastest, eager_ms = board.best_of_torch(), board.baselines_ms.get("eager")
    if fastest and eager_ms and fastest[0] != "eager":
        text += f", {board.best_speedup * fastest[1] / eager_ms:.2f}x {fastest[0].replace('_', ' ')}"
    if board.best_ms and board.floor_ms:
        text += f", {100 * board.floor_ms / board.best_ms:.0f}% of the floor's speed"
    title = board.ideas.get(board.idea_by_candidate.get(str(board.best_id), ""), "")
    return f"{text}  {_sparkline(list(board.history.values()))} {board.best_id}{f': {title}' if title else ''}"


def _sparkline(values: list[float]) -> str:
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    return "".join(BARS[round((v - low) / ((high - low) or 1) * (len(BARS) - 1))] for v in values[-24:])


def format_cost(board: Board) -> str:
    """Return tokens and dollars when a paid model took part."""
    return f"; {board.tokens:,} tokens, ${board.usd:.2f}" if board.tokens else ""


def format_left(board: Board) -> str:
    """Return a guess at the time left, once there is one."""
    left_s = board.left_s()
    if left_s is None:
        return ""
    return f", about {format_seconds(left_s)} left" if left_s >= 1 else ", almost done"


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def format_seconds(seconds: float) -> str:
    """Return a duration as 42s, 3m05s or 2h07m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
