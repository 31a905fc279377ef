"""Keep the fastest correct kernels, remember what the round taught, and decide whether there is another."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ridgeline.graph.search.compiled import join_compiled, runs_beside_models
from ridgeline.graph.search.elites import Standing, choose_elites
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.judging import judged_standings, profile_elites
from ridgeline.graph.search.rounds import is_progress, ranking_state, save_summary, stop_reason, tell_round

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import SearchState

logger = logging.getLogger(__name__)


async def select(state: SearchState, context: SearchContext) -> SearchState:
    """Return the next round's elites and, when a stop rule holds, the outcome."""
    round_ = state.get("round", 0)
    plan = context.plan(state.get("max_rounds"))
    if runs_beside_models(context):
        await join_compiled(context)
    standings = await judged_standings(context)
    elites = choose_elites(standings, plan.elites)
    best = standings[0] if standings else None
    stalled = 0 if is_progress(best, state) else state.get("stalled_rounds", 0) + 1
    await profile_elites(context, elites)
    entry = await save_summary(context, round_, elites, best)
    outcome, reason = await stop_reason(context, plan, round_=round_, stalled_rounds=stalled, best=best)
    route = _route(outcome, has_trials=bool(best) and plan.trials(round_) > 0)
    if route != "tune":
        tell_round(plan, entry)
    if route == "certify":
        emit({"event": "stopped", "outcome": outcome, "reason": reason})
    logger.info("round %d: best %s %.3fx %s", round_, best.candidate.id if best else "none", _speedup(best), outcome)
    return {
        **ranking_state(elites, best),
        "stalled_rounds": stalled,
        "outcome": outcome,
        "route": route,
    }


def _route(outcome: str, *, has_trials: bool) -> str:
    """Return the next node; a search that may not spend more or cannot gain more is not tuned again."""
    if outcome in ("budget", "at_floor"):
        return "certify"
    if has_trials:
        return "tune"
    return "certify" if outcome else "ideate"


def _speedup(best: Standing | None) -> float:
    return best.speedup if best else 0.0
