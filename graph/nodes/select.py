"""Keep the fastest correct kernels, remember what the round taught, and decide whether there is another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.graph.search.judging.compiled import join_compiled, runs_beside_models
from ridgeline.graph.search.rounds.closing import close_round

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import SearchState


async def select(state: SearchState, context: SearchContext) -> SearchState:
    """Return the next round's elites and, when a stop rule holds, the outcome; what is tunable is tuned first."""
    plan = context.plan(state.get("max_rounds"))
    if runs_beside_models(context):
        await join_compiled(context)
    return await close_round(
        context,
        plan,
        state,
        stalled_rounds=state.get("stalled_rounds", 0) + 1,
        may_tune=plan.trials(state.get("round", 0)) > 0,
    )
