"""Whether a search that began earlier may go on, and with what input."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.graph.search.elites import read_standings
from ridgeline.graph.search.memory import unwritten_branches
from ridgeline.graph.search.rounds import stop_reason
from ridgeline.tools.errors import RunError

if TYPE_CHECKING:
    from ridgeline.checkpoints.run_record import RunRecord
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.records.problem import Target


def source_sha256(target: Target) -> str:
    """Return the hash of the reference with its sizes."""
    return hashlib.sha256(target.reference_source.encode()).hexdigest()


def check_same(run_dir: Path, begun: RunRecord, target: Target) -> None:
    """Raise RunError when what a search would measure now does not compare with what it measured before."""
    problem = begun.problem or {}
    if begun.reference_source_sha256 != source_sha256(target):
        if problem.get("name") != target.name:
            raise RunError(
                f"{run_dir}: a search of {problem.get('name')}, not of {target.name}; resume it without naming a problem, "
                f"or give a run of {target.name}"
            )
        raise RunError(f"{run_dir}: the reference or its sizes changed since this search began; start anew")
    arch = begun.device.arch if begun.device else None
    if arch != target.device.arch:
        raise RunError(
            f"{run_dir}: begun on {arch}, this device is {target.device.arch}; resume it there or start anew"
        )
    for name in ("interface", "tolerance", "call_timeout_s"):
        was, now = problem.get(name), getattr(target, name)
        if was != now:
            raise RunError(f"{run_dir}: begun with {name} {was}, the problem now says {now}; set it back or start anew")


async def extension(
    context: SearchContext, values: Mapping[str, Any], max_rounds: int | None
) -> tuple[dict[str, int] | None, str]:
    """Return the input that lets a search that is over go on; else None and the rule that keeps it over, if one was asked.

    `max_rounds` extends any search, a stalled one too. Without it, one that its budget ended goes on when there is room
    in the budget now, first with what that left unwritten, which may lie in the last round.
    """
    if max_rounds is None and values["outcome"] != "budget":
        return None, ""
    rounds = max_rounds or values.get("max_rounds") or context.settings.rounds
    round_ = values.get("round", 0) - (1 if await unwritten_branches(context, values) else 0)
    standings = await asyncio.to_thread(read_standings, context.archive)
    outcome, reason = await stop_reason(
        context,
        context.plan(rounds),
        round_=round_,
        stalled_rounds=0 if max_rounds else values.get("stalled_rounds", 0),
        best=standings[0] if standings else None,
    )
    return (None, reason) if outcome else ({"max_rounds": rounds}, "")
