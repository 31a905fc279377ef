"""A search's events, the board that they make and its lines, with a clock that a test moves."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from ridgeline.graph.cli.view.board import Board
from ridgeline.graph.cli.view.progress import Drawing


class Clock:
    """A clock that a test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def make_board(clock: Clock | None = None) -> Board:
    return Board(problem="toy", device="cpu", models=("scripted",), clock=clock or Clock())


def drawn(board: Board, *, width: int = 80, height: int = 24) -> list[str]:
    """Return the board's lines as a terminal of this size shows them."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, color_system=None, width=width, height=height)
    console.print(Drawing(board))
    return text.getvalue().rstrip("\n").split("\n")


def stage(branch: str, name: str, attempt: int = 0) -> dict[str, Any]:
    idea_id, _, _ = branch.partition("v")
    return {
        "event": "branch_stage",
        "branch": branch,
        "idea_id": idea_id,
        "candidate_id": f"{branch}a{attempt}",
        "stage": name,
        "attempt": attempt,
        "model": "scripted",
    }


def done(branch: str, speedup: float | None) -> dict[str, Any]:
    return {
        "event": "candidate_done",
        "candidate_id": f"{branch}a0",
        "idea_id": branch.partition("v")[0],
        "branch": branch,
        "origin": "model",
        "status": "ok" if speedup else "compile_error",
        "reason": "" if speedup else "error: expected ';' before '}' token",
        "median_ms": 0.4 / speedup if speedup else None,
        "reference_ms": 0.4 if speedup else None,
        "speedup": speedup,
        "speedup_ci95": [0.9 * speedup, 1.2 * speedup] if speedup else None,
    }


def round_started(round_: int, max_rounds: int = 3) -> dict[str, Any]:
    return {"event": "round_started", "round": round_, "max_rounds": max_rounds, "ideas": 1, "branches": 1}


def round_done(round_: int, max_rounds: int = 3) -> dict[str, Any]:
    best = {
        "best_id": "r1i0v0a0",
        "best_speedup": 1.5,
        "best_speedup_ci95": [1.4, 1.6],
        "best_median_ms": 0.2,
        "elites": [],
        "unpriced_calls": 0,
    }
    return {"event": "round_done", "round": round_, "max_rounds": max_rounds, "tokens": 0, "usd": 0.0, **best}


def measured(baselines_ms: dict[str, float], floor_ms: float = 0.1) -> dict[str, Any]:
    """Return that PyTorch and the floor are measured."""
    floor = {"floor_ms": floor_ms, "compute_floor_ms": 0.0, "bound": "memory", "headroom": None}
    return {"event": "baseline", "baselines_ms": baselines_ms, "stored": {}, **floor}


def waiting(holder: str, *, is_news: bool = True) -> dict[str, Any]:
    """Return that a search waits; without a holder, that it has the device now."""
    return {"event": "waiting", "device": "cpu", "holder": holder, "holders": 1, "is_news": is_news}


def certifying(step: str, *, passed: bool | None, detail: str = "") -> dict[str, Any]:
    return {"event": "certify", "candidate_id": "r1i0v0a0", "step": step, "passed": passed, "detail": detail}


BASELINES = {"eager": 0.412, "compile": 0.305, "compile_max_autotune": 0.301}


def busy_events() -> list[dict[str, Any]]:
    """Return the events of 16 branches in all stages."""
    events: list[dict[str, Any]] = [measured(BASELINES, floor_ms=0.12), round_started(2)]
    for n in range(8):
        title = f"fuse the reduction with the store, variant {n}"
        idea = {"event": "idea", "round": 2, "idea_id": f"r2i{n}", "title": title, "category": "", "model": "offline"}
        events.append(idea)
        events += [stage(f"r2i{n}v{v}", ("write", "compile", "verify", "benchmark")[(n + v) % 4]) for v in range(2)]
    events += [done("r2i0v0", 1.62), done("r2i1v1", None)]
    events += [{"event": "warning", "message": f"r2i{n}v0a0: not written: the server gave no answer"} for n in (3, 5)]
    return events


def busy_board() -> Board:
    """Return a board of 16 branches in all stages."""
    board = make_board()
    for event in busy_events():
        board.apply(event)
    return board
