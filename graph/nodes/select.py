"""Keep the fastest correct kernels, remember what the round taught, and decide whether there is another."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ridgeline.graph.certificate.leaders import compare_for_elites
from ridgeline.graph.search.compiled import join_compiled, runs_beside_models
from ridgeline.graph.search.elites import Standing, best_of_ideas, ranked_elites
from ridgeline.graph.search.judging import judged_standings, profile_elites
from ridgeline.graph.search.rounds import (
    Stop,
    first_stop,
    is_progress,
    outcome_state,
    ranking_state,
    save_summary,
    tell_round,
    tell_stop,
)
from ridgeline.graph.state import Route
from ridgeline.tools.records.vocabulary import SearchOutcome

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
    best = standings[0] if standings else None
    has_trials = bool(best) and plan.trials(round_) > 0
    if goes_on := not has_trials and round_ < plan.rounds:
        await compare_for_elites(context, standings)
    elites = await ranked_elites(context, standings, plan.elites)
    stalled = 0 if is_progress(best, state) else state.get("stalled_rounds", 0) + 1
    taught = best_of_ideas(standings, state.get("ideas", [])) if goes_on else []
    await profile_elites(context, [*elites, *taught])
    entry = await save_summary(context, round_, elites, best)
    stop = await first_stop(context, plan, round_=round_, stalled_rounds=stalled, best=best)
    route = _route(stop, has_trials=has_trials)
    if route is not Route.TUNE:
        tell_round(plan, entry)
    if stop and route is Route.CERTIFY:
        tell_stop(stop)
    outcome = stop.outcome if stop else ""
    logger.info("round %d: best %s %.3fx %s", round_, best.candidate.id if best else "none", _speedup(best), outcome)
    return {
        **ranking_state(elites, best),
        **outcome_state(stop),
        "stalled_rounds": stalled,
        "route": route.value,
    }


def _route(stop: Stop | None, *, has_trials: bool) -> Route:
    """Return the next node; a search that may not spend more or cannot gain more is not tuned again."""
    if stop and stop.outcome in (SearchOutcome.BUDGET, SearchOutcome.AT_FLOOR):
        return Route.CERTIFY
    if has_trials:
        return Route.TUNE
    return Route.CERTIFY if stop else Route.IDEATE


def _speedup(best: Standing | None) -> float:
    return best.speedup if best else 0.0
