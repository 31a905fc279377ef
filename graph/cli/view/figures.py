"""The figures of a running search in words: what the live board and the plain lines both show."""

from __future__ import annotations

from ridgeline.checkpoints.report.floors import floors_words, share_words
from ridgeline.graph.cli.view.board import Board
from ridgeline.tools.records.reference_mode import ReferenceMode, mode_words
from ridgeline.tools.wording import counted, in_brackets, near_one, ratio_words, stored_words, usd_words

BARS = "▁▂▃▄▅▆▇█"
MOST_NAMED = 2
"""Given kernels that are named where they are not correct; `ridgeline show` lists all."""


def format_baselines(board: Board) -> str:
    """Return every baseline's time in one line."""
    again = " (by itself again, for the certificate)" if board.are_of_certificate else ""
    each = ", ".join(
        (f"{mode_words(name)} {ms:.3f} ms" if ms is not None else f"{mode_words(name)} failed")
        + in_brackets(stored_words(board.baselines_stored.get(name)))
        for name, ms in board.baselines_ms.items()
    )
    return f"{each}{again}"


def format_floors(board: Board) -> str:
    """Return both floors where arithmetic binds, else the memory floor; "" before they are known."""
    return "" if board.floor_ms is None else floors_words(board.floor_ms, board.compute_floor_ms)


def format_best(board: Board) -> str:
    """Return the best kernel so far against eager, the best baseline and the floor."""
    if board.best_speedup is None:
        return "none yet"
    text = ratio_words(board.best_speedup, board.best_interval, unit="eager")
    fastest, eager_ms = board.best_of_torch(), board.baselines_ms.get(ReferenceMode.EAGER)
    if fastest and eager_ms and fastest[0] != ReferenceMode.EAGER:
        text += f", {near_one(board.best_speedup * fastest[1] / eager_ms)}x {mode_words(fastest[0])}"
    if board.best_ms and board.floor_ms:
        text += f", {share_words(board.best_ms, board.floor_ms, board.compute_floor_ms)}"
    title = board.ideas.get(board.idea_by_candidate.get(str(board.best_id), ""), "")
    return f"{text}  {_sparkline(list(board.history.values()))} {board.best_id}{f': {title}' if title else ''}"


def format_behind(board: Board) -> str:
    """Return why a kernel with a higher figure than the best one's ranks behind it; "" where there is none."""
    if board.behind is None:
        return ""
    name, speedup, interval = board.behind
    if name in board.failed_step:
        why = f"its certificate failed at {board.failed_step[name]}"
    elif name in board.failed_beside:
        why = f"it failed where it was timed in turns with {board.failed_beside[name]}"
    elif _were_timed_in_turns(board, str(board.best_id), name):
        why = f"timed in turns, {board.best_id} was faster"
    else:
        why = "the interval's lower end counts"
    return f"{ratio_words(speedup, interval)} of {name} ranks behind: {why}"


def _were_timed_in_turns(board: Board, one: str, other: str) -> bool:
    """Say whether two kernels were timed in turns with each other, or both with a third, beside which the best is chosen."""
    beside_one, beside_other = ({n for pair in board.compared if name in pair for n in pair} for name in (one, other))
    return bool(beside_one & beside_other)


def _sparkline(values: list[float]) -> str:
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    return "".join(BARS[round((v - low) / ((high - low) or 1) * (len(BARS) - 1))] for v in values[-24:])


def format_judged(board: Board) -> str:
    """Return how many kernels are judged and correct, and the given ones that are not: they are in no branch."""
    judged, correct = counted(len(board.verdicts), "kernel"), sum(board.verdicts.values())
    given = [name for name, is_correct in board.verdicts.items() if not (is_correct or name in board.idea_by_candidate)]
    shown = ", ".join(given[:MOST_NAMED]) + (", …" if len(given) > MOST_NAMED else "")
    return f"{judged} (seeds and tuned ones too), {correct} correct{f' (of the seeds not {shown})' if given else ''}"


def format_requests(board: Board) -> str:
    """Return how many requests wait for an answer, and where; "" without any."""
    if board.requests is None:
        return ""
    count, folder = board.requests
    return f"{counted(count, 'request')} waiting for an answer in {folder}"


def format_batched(board: Board) -> str:
    """Return how many requests wait in batches; "" without any."""
    return f"{counted(board.batched, 'request')} waiting in a batch at the provider" if board.batched else ""


def format_cost(board: Board) -> str:
    """Return tokens and dollars when a paid model took part."""
    return f"; {counted(board.tokens, 'token')}, {usd_words(board.usd, board.unpriced)}" if board.tokens else ""


def format_left(board: Board, joint: str = ",") -> str:
    """Return a guess at the time left, once there is one, behind what it is joined to."""
    left_s, is_certifying = board.left_s(), board.ends_at is not None
    if left_s is None:
        return ""
    if left_s < 1:
        expected_s, what = board.expected_s(), "of the certificate" if is_certifying else "of this round"
        return f"{joint} longer than {f'the {format_seconds(expected_s)} ' if expected_s else ''}expected {what}"
    return f"{joint} about {format_seconds(left_s)} left{'' if is_certifying else ' of the rounds'}"


def format_seconds(seconds: float) -> str:
    """Return a duration as 42s, 3m05s or 2h07m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
