"""What the user tells a search that has begun, as its next round takes it up: ideas, and seed kernels."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ridgeline.checkpoints.steering import Steering, SteerKind
from ridgeline.graph.search.elites import choose_elites
from ridgeline.graph.search.given_kernels import given_kernel
from ridgeline.graph.search.judging import judged_standings
from ridgeline.graph.search.rounds import ranking_state
from ridgeline.graph.search.seeds import judge_seeds
from ridgeline.tools.records.vocabulary import Origin

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.plan import Plan
    from ridgeline.graph.state import SearchState
    from ridgeline.tools.records.search import Candidate


async def told_ideas(context: SearchContext, round_: int) -> tuple[str, ...]:
    """Return the user's ideas: those told since the search began, then those of the problem's file."""
    told = await asyncio.to_thread(Steering(context.archive).told, SteerKind.IDEA, upto_round=round_)
    return (*(steer.text for steer in told), *context.problem.ideas)


async def take_up_seeds(context: SearchContext, plan: Plan, round_: int) -> SearchState:
    """Judge the seeds told since the last round; return the ranking with them, nothing where there are none.

    They belong to this round, so a search that was killed after it judged them finds them and ranks them again.
    """
    seeds = await asyncio.to_thread(_store_new, context, round_)
    if not seeds:
        return {}
    await judge_seeds(context, seeds)
    standings = await judged_standings(context)
    return ranking_state(choose_elites(standings, plan.elites), standings[0] if standings else None)


def _store_new(context: SearchContext, round_: int) -> list[Candidate]:
    """Store the told seeds that are no candidates yet; return all that this round took up."""
    archive = context.archive
    known = {candidate.id for candidate in archive.candidates(origin=Origin.SEED)}
    told = Steering(archive).told(SteerKind.SEED, upto_round=round_)
    archive.add_candidates(
        given_kernel(steer.name, steer.text, context.target, origin=Origin.SEED, round_=round_)
        for steer in told
        if steer.name not in known
    )
    return archive.candidates(round=round_, origin=Origin.SEED)
