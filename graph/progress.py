"""What a person sees while a search runs: a live board on a terminal, plain lines elsewhere.

Both read the same events (graph/events.py) into the same `Board`; only the drawing differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

BARS = "▁▂▃▄▅▆▇█"
STAGE_WORDS = {"write": "writing", "compile": "compiling", "verify": "verifying", "benchmark": "timing", "done": "done"}


@dataclass(slots=True, kw_only=True)
class Branch:
    """One branch of the current round, as far as its events tell."""

    idea_id: str
    stage: str = "write"
    attempt: int = 0
    model: str = ""
    outcome: str = ""


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
    rounds_seen: int = 0  # that ended in this process
    first_round_at: float = 0.0
    ideas: dict[str, str] = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)
    best_id: str | None = None
    best_speedup: float | None = None
    best_ms: float | None = None
    idea_by_candidate: dict[str, str] = field(default_factory=dict)
    history: dict[int, float] = field(default_factory=dict)  # best speedup by round
    judged: int = 0
    correct: int = 0
    tokens: int = 0
    usd: float = 0.0
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began_at = self.clock()

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take one event in; events this version does not know are left alone."""
        handler = getattr(self, f"_on_{event['event']}", None)
        if handler is not None:
            handler(event)

    def elapsed_s(self) -> float:
        """Return the seconds since the search's process began."""
        return self.clock() - self.began_at

    def left_s(self) -> float | None:
        """Return a guess at the seconds left, from the rounds that ended in this process; None before the first."""
        if not self.rounds_seen or self.round >= self.max_rounds:
            return None
        return (self.clock() - self.first_round_at) / self.rounds_seen * (self.max_rounds - self.round)

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
        self.first_round_at = self.first_round_at or self.clock()

    def _on_idea(self, event: Mapping[str, Any]) -> None:
        self.ideas[event["idea_id"]] = event["title"]

    def _on_branch_stage(self, event: Mapping[str, Any]) -> None:
        name = event["branch"]
        branch = self.branches.setdefault(name, Branch(idea_id=event["idea_id"]))
        branch.stage, branch.attempt = event["stage"], event["attempt"]
        branch.model = event["model"] or branch.model

    def _on_candidate_done(self, event: Mapping[str, Any]) -> None:
        self.judged += 1
        if event["idea_id"]:
            self.idea_by_candidate[event["candidate_id"]] = event["idea_id"]
        if event["branch"] in self.branches:
            self.branches[event["branch"]].outcome = describe_outcome(event)
        if event["status"] != "ok" or event["speedup"] is None:
            return
        self.correct += 1
        if self.best_speedup is None or event["speedup"] > self.best_speedup:
            self._set_best(event["candidate_id"], event["speedup"], event["median_ms"])

    def _on_round_done(self, event: Mapping[str, Any]) -> None:
        self.tokens, self.usd = event["tokens"], event["usd"]
        self.rounds_seen += 1
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
        self.phase = f"{event['outcome']}: {event['reason']}"

    def _on_warning(self, event: Mapping[str, Any]) -> None:
        self.warnings.append(event["message"])

    def _set_best(self, candidate_id: str | None, speedup: float, median_ms: float | None) -> None:
        self.best_id, self.best_speedup = candidate_id, speedup
        self.best_ms = median_ms


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
        self._live = Live(console=console, refresh_per_second=4, get_renderable=lambda: draw(board), transient=False)
        self._live.start()

    def show(self, event: Mapping[str, Any]) -> None:
        """Take one event; the board is redrawn on its own clock."""
        self._board.apply(event)

    def close(self) -> None:
        """Draw once more and give the terminal back."""
        self._live.stop()


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
            return f"round {event['round']}/{event['max_rounds']}: {event['ideas']} ideas, {event['branches']} branches"
        case "idea":
            return f"  idea {event['idea_id']}: {event['title']}  [{event['category']}; {event['model']}]"
        case "candidate_done":
            return f"  {event['candidate_id']:<12} {describe_outcome(event)}"
        case "round_done":
            return f"round {event['round']} done: best {format_best(board)}{format_cost(board)}"
        case "certify":
            mark = {None: "…", True: "passed", False: "FAILED"}[event["passed"]]
            detail = f" ({event['detail']})" if event.get("detail") else ""
            return f"certify {event['candidate_id']}: {event['step']} {mark}{detail}"
        case "stopped":
            return f"{event['outcome']}: {event['reason']}"
        case "warning":
            return f"warning: {event['message']}"
    return ""


def draw(board: Board) -> RenderableType:
    """Return the whole board."""
    parts: list[RenderableType] = [_summary(board)]
    if board.branches:
        parts.append(_branches(board))
    parts += [Text(f"warning: {message}", style="yellow") for message in board.warnings[-3:]]
    title = f"[bold]ridgeline[/] {board.problem} on {board.device}"
    return Panel(Group(*parts), title=title, title_align="left", subtitle=board.phase, subtitle_align="left")


def _summary(board: Board) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(ratio=1)
    table.add_row("PyTorch", format_baselines(board) or "measuring …")
    if board.floor_ms is not None:
        table.add_row("floor", f"{board.floor_ms:.3f} ms ({board.bound}-bound)")
    table.add_row("best", Text(format_best(board), style="bold green" if (board.best_speedup or 0) > 1 else ""))
    if board.max_rounds:
        table.add_row(
            "rounds",
            ProgressBar(
                total=board.max_rounds,
                completed=max(0, board.round - 1) + (board.rounds_seen > 0 and not board.branches),
                width=30,
            ),
        )
    left = board.left_s()
    clock = format_seconds(board.elapsed_s()) + (f", about {format_seconds(left)} left" if left is not None else "")
    table.add_row("time", clock)
    table.add_row("judged", f"{board.judged} kernels, {board.correct} correct{format_cost(board)}")
    return table


def _branches(board: Board) -> Table:
    table = Table(box=None, pad_edge=False, expand=True, show_edge=False)
    table.add_column("branch", no_wrap=True, style="dim")
    table.add_column("idea", ratio=3, no_wrap=True, overflow="ellipsis")
    table.add_column("stage", no_wrap=True)
    table.add_column("outcome", ratio=2, no_wrap=True, overflow="ellipsis")
    for name, branch in sorted(board.branches.items()):
        stage = STAGE_WORDS.get(branch.stage, branch.stage)
        if branch.attempt and branch.stage != "done":
            stage += f" (repair {branch.attempt})"
        good = branch.outcome.startswith("ok")
        outcome = Text(branch.outcome, style="green" if good else "red")
        table.add_row(name, Text(board.ideas.get(branch.idea_id, "")), stage, outcome)
    return table


def describe_outcome(event: Mapping[str, Any]) -> str:
    """Return a finished candidate's outcome in a few words."""
    if event["status"] == "ok" and event["speedup"] is not None:
        median = f" ({event['median_ms']:.3f} ms)" if event["median_ms"] is not None else ""
        return f"ok {event['speedup']:.2f}x eager{median}"
    return f"{event['status']}: {' '.join(str(event['reason']).split())[:160]}"


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


def format_seconds(seconds: float) -> str:
    """Return a duration as 42s, 3m05s or 2h07m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
