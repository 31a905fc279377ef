"""A search that began earlier: whether it may go on, and how far."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
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
    """Raise RunError when new measurements would not compare with the run's earlier ones."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """Continuation of a search that is over."""

    max_rounds: int | None = None  # None: it stays over
    reason: str = ""  # the stop rule that keeps it over; empty when nobody asked for more


async def extension(context: SearchContext, values: Mapping[str, Any], max_rounds: int | None) -> Extension:
    """Return how far a search that is over goes on, by the values of its last state.

    `max_rounds` extends every search, also a stalled one. Without it, a search that its budget ended goes on when the
    budget has room now. The branches that the spent budget left unwritten come first; they may lie in the last round.
    """
    if max_rounds is None and values["outcome"] != "budget":
        return Extension()
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
    return Extension(reason=reason) if outcome else Extension(max_rounds=rounds)
