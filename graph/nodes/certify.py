"""Prove the winner again in fresh processes; when it fails, try the next best elite."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ridgeline.graph.certificate import Certificate, certify_candidate
from ridgeline.graph.elites import Standing, choose_elites, read_standings
from ridgeline.graph.events import emit
from ridgeline.graph.measuring import measure_again

if TYPE_CHECKING:
    from ridgeline.graph.context import SearchContext
    from ridgeline.graph.state import SearchState

logger = logging.getLogger(__name__)


async def certify(state: SearchState, context: SearchContext) -> SearchState:
    """Certify the fastest elite that passes, store its certificate, and give the bank the elites.

    A search in which none is certified faster than eager ends `no_gain`, whatever stopped it.
    """
    await measure_again(context)
    standings = await asyncio.to_thread(read_standings, context.archive)
    elites = choose_elites(standings, context.plan(state.get("max_rounds")).elites)
    winner: Standing | None = None
    certificate: Certificate | None = None
    failures: list[dict[str, str]] = []
    for standing in elites:
        if standing.speedup <= 1:
            break
        certificate = await certify_candidate(context, standing)
        if certificate.passed:
            winner = standing
            break
        failures.append({"candidate_id": standing.candidate.id, "reason": certificate.reason})
        emit({"event": "warning", "message": f"{standing.candidate.id} is not certified: {certificate.reason}"})
    outcome = state.get("outcome", "") if winner else "no_gain"
    if certificate is not None:
        await asyncio.to_thread(context.archive.save_certificate, certificate.to_json(failures, outcome))
    if outcome == "no_gain" and state.get("outcome") != "no_gain":
        emit({"event": "stopped", "outcome": outcome, "reason": "no certified kernel is faster than eager PyTorch"})
    await asyncio.to_thread(_bank, context, elites if winner else [])
    # nothing stands up when what looked faster failed; a slower kernel is still the best where none looked faster
    best = winner or (standings[0] if standings and not failures else None)
    await asyncio.to_thread(
        context.archive.save_run, {"state": outcome, "best_id": best.candidate.id if best else None}
    )
    return {
        "outcome": outcome,
        "certified": winner is not None,
        "best_id": best.candidate.id if best else None,
        "best_speedup": best.speedup if best else None,
    }


def _bank(context: SearchContext, elites: list[Standing]) -> None:
    if context.bank is None:
        return
    for standing in elites:
        context.bank.add(
            context.family(),
            context.target.device.arch,
            context.problem.name,
            standing.candidate,
            standing.evaluation,
        )
