"""The line of a log that an event of a search makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ridgeline.checkpoints.report.wording import step_words
from ridgeline.checkpoints.run_record import OFFLINE
from ridgeline.graph.cli.view.board import Board, describe_stop
from ridgeline.graph.cli.view.figures import (
    format_baselines,
    format_batched,
    format_behind,
    format_best,
    format_cost,
    format_floors,
    format_left,
    format_requests,
    format_seconds,
)
from ridgeline.graph.cli.view.outcomes import describe_outcome
from ridgeline.tools.machine.waits import describe_wait
from ridgeline.tools.wording import counted

CERTIFY_WORDS = {
    "sanitize": "built and run once more under memory checks",
    "time": "timed three times, each in a new process",
    "baselines": "every configuration of PyTorch once more: up to minutes each",
    "compare": "in turns with the best seed kernel",
    "own_work": "whose code the time is spent in",
    "other_shapes": "the same source built for other sizes",
}
"""What the certificate's steps do, for those that take long or whose words do not say it."""


def plain_line(event: Mapping[str, Any], board: Board) -> str:
    """Return one line of plain text for an event, or "" for those that only the live board shows."""
    match event["event"]:
        case "baseline":
            return f"PyTorch: {format_baselines(board)}; {format_floors(board)}"
        case "round_started":
            work = f"{counted(event['ideas'], 'idea')}, {counted(event['branches'], 'branch')}"
            of = f"/{event['max_rounds']}" if event["max_rounds"] else ""
            return f"round {event['round']}{of}: {work}"
        case "idea":
            return f"  idea {event['idea_id']}: {event['title']}  [{event['category']}; {event['model']}]"
        case "candidate_done":
            return f"  {event['candidate_id']:<12} {describe_outcome(event)}"
        case "round_done":
            behind = f"; {why}" if (why := format_behind(board)) else ""
            told = f"{format_best(board)}{behind}{format_cost(board)}{format_left(board, ';')}"
            return f"round {event['round']} done: best so far {told}"
        case "certification":
            return f"certification begins, which may take {format_seconds(event['left_s'])}: {event['phase']}"
        case "certify":
            return f"certify {event['candidate_id']}{_place_words(event, board)}: {_step_words(event)}"
        case "stopped":
            return describe_stop(event, board)
        case "warning" | "note" as kind:
            return f"{kind}: {event['message']}"
    return _waiting_line(event, board)


def _place_words(event: Mapping[str, Any], board: Board) -> str:
    """Return " (2 of 9, about 3m05s left)" of a step that begins; where others were waited for, that this adds to it."""
    if "place" not in event:
        return ""
    number, of = event["place"]
    beside = " and waits for other processes" if board.waited_s >= 1 else ""
    left = f", about {format_seconds(event['left_s'])}{beside} left" if event["left_s"] >= 1 else ""
    return f" ({number} of {of}{left})"


def _step_words(event: Mapping[str, Any]) -> str:
    """Return a certificate's step and how far it is: what it does, what it found, or why it failed or was skipped."""
    step, detail = step_words(event["step"]), event.get("detail") or ""
    if event.get("skipped"):
        return f"{step} skipped: {detail}"
    if event["passed"] is None and detail:
        return f"{step} not done ({detail})"
    if event["passed"] is None:
        doing = CERTIFY_WORDS.get(event["step"])
        return f"{step} …{f' ({doing})' if doing else ''}"
    if event["passed"]:
        return f"{step}: {detail}" if detail else f"{step} passed"
    return f"{step} FAILED{f' ({detail})' if detail else ''}"


_PHASES = ("timing_pytorch", "seeds", "comparing")
"""Events whose line is the phase that they begin."""


def _waiting_line(event: Mapping[str, Any], board: Board) -> str:
    """Return one line on what is done beside the rounds, or on a pause of the search; else ""."""
    if event["event"] in _PHASES:
        return board.phase
    if event["event"] == "mailbox":
        return format_requests(board)
    if event["event"] == "batch":
        return format_batched(board)
    if event["event"] == "ideation":  # the offline model answers at once
        return "" if board.models == (OFFLINE,) else board.phase
    if event["event"] != "waiting" or not event["is_news"] or board.stopping:
        return ""
    return describe_wait(event["device"], event["holder"], event["holders"])
