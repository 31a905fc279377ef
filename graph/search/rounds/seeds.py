"""Kernels that a search is given: those of its problem, and those that its user tells it once it has begun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.steering import Steering, SteerKind
from ridgeline.graph.search.events import emit, warn
from ridgeline.graph.search.judging.given_kernels import given_kernel
from ridgeline.graph.search.judging.judging import judge_candidate, judged_standings
from ridgeline.graph.search.ranking.elites import ranked_elites
from ridgeline.graph.search.rounds.stop_rules import ranking_state
from ridgeline.graph.search.running.gathering import gather_or_cancel
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.keys import seed_id
from ridgeline.tools.records.vocabulary import Origin, Purpose

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.shape.plan import Plan
    from ridgeline.graph.state import SearchState
    from ridgeline.problems.spec import ProblemSpec
    from ridgeline.tools.records.problem import Target
    from ridgeline.tools.records.search import Candidate


def seed_candidates(problem: ProblemSpec, target: Target) -> list[Candidate]:
    """Return the candidates of a problem's seed kernels for the target's device."""
    sources = problem.seed_sources(target.device.kind.value)
    return [given_kernel(seed_id(stem), source, target, origin=Origin.SEED) for stem, source in sources]


async def judge_seeds(context: SearchContext, seeds: Sequence[Candidate]) -> None:
    """Judge kernels, with a warning for each that is no use; the engine decides what really runs at once."""
    if seeds:
        banked = sum(kernel.origin is Origin.BANK for kernel in seeds)
        emit({"event": "seeds", "kernels": len(seeds), "banked": banked})
    for ended in await gather_or_cancel(*(judge_candidate(context, kernel, Purpose.SEARCH) for kernel in seeds)):
        evaluation = ended.as_evaluation() if isinstance(ended, EngineFailure) else ended
        if evaluation.speedup is None:
            message = f"{evaluation.candidate_id}: {evaluation.status}: {evaluation.reason}"
            warn(message)


async def take_up_seeds(context: SearchContext, plan: Plan, round_: int) -> SearchState:
    """Judge the seeds told since the last round; return the ranking with them, nothing where there are none.

    They belong to this round, so a search that was killed after it judged them finds them and ranks them again.
    """
    seeds = await run_whole(_store_told, context, round_)
    if not seeds:
        return {}
    await judge_seeds(context, seeds)
    standings = await judged_standings(context)
    elites = await ranked_elites(context.archive, standings, plan.elites)
    return ranking_state(elites, standings[0] if standings else None)


def _store_told(context: SearchContext, round_: int) -> list[Candidate]:
    """Store the told seeds that are no candidates yet; return all that this round took up."""
    archive = context.archive
    known = {candidate.id for candidate in archive.candidates(origin=Origin.SEED)}
    told = Steering(archive).told(SteerKind.SEED, upto_round=round_)
    new = (steer for steer in told if steer.name not in known)
    archive.add_candidates(
        given_kernel(steer.name, steer.text, context.target, origin=Origin.SEED, round_=round_) for steer in new
    )
    return archive.candidates(round=round_, origin=Origin.SEED)
