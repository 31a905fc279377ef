"""Sweep the values that the elites declare as tunable; no token is spent."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ridgeline.graph.budget import exhausted, spent
from ridgeline.graph.elites import choose_elites, read_standings
from ridgeline.graph.events import emit
from ridgeline.graph.measuring import evaluate
from ridgeline.graph.profiling import profile
from ridgeline.graph.rounds import GAIN, save_summary, stop_reason, tell_round
from ridgeline.graph.tuning import Trial, Tunable, next_points, parse_tunables, untuned_id, with_values
from ridgeline.tools.records import Candidate, Origin, Purpose

if TYPE_CHECKING:
    from ridgeline.graph.context import SearchContext
    from ridgeline.graph.state import SearchState

logger = logging.getLogger(__name__)

BATCH = 4
"""Points chosen from the same knowledge: their builds run side by side while one is timed."""


async def tune(state: SearchState, context: SearchContext) -> SearchState:
    """Measure this round's tuned points and return the elites again; resumes at the first point not yet measured."""
    round_ = state.get("round", 0)
    plan = context.plan(state.get("max_rounds"))
    await _sweep(context, state, round_, plan.trials(round_))
    standings = await asyncio.to_thread(read_standings, context.archive)
    elites = choose_elites(standings, plan.elites)
    best = standings[0] if standings else None
    for standing in elites:
        await profile(context, standing)
    is_progress = best is not None and best.speedup > GAIN * (state.get("best_speedup") or 0.0)
    stalled = 0 if is_progress else state.get("stalled_rounds", 0)
    tell_round(plan, await save_summary(context, round_, elites, best))
    outcome, reason = await stop_reason(context, plan, round_=round_, stalled_rounds=stalled, best=best)
    if outcome:
        emit({"event": "stopped", "outcome": outcome, "reason": reason})
    return {
        "elites": [s.candidate.id for s in elites],
        "best_id": best.candidate.id if best else None,
        "best_speedup": best.speedup if best else None,
        "stalled_rounds": stalled,
        "tuned_round": round_,
        "outcome": outcome,
        "route": "certify" if outcome else "ideate",
    }


async def _sweep(context: SearchContext, state: SearchState, round_: int, trials: int) -> None:
    """Share the round's trials among the elites, fastest first; what one leaves unused the next one gets."""
    roots = await asyncio.to_thread(_tunable_roots, context, state.get("elites", []))
    for place, root_id in enumerate(roots):
        done = await asyncio.to_thread(_tuned, context, round_)
        others = [c for c in done if untuned_id(c.id) != root_id]
        left = trials - len(others)
        share = math.ceil(max(0, left) / (len(roots) - place))
        await _sweep_one(context, root_id, round_, share, trials)


def _tunable_roots(context: SearchContext, elites: Sequence[str]) -> list[str]:
    """Return the kernels behind the elites that declare tunables, fastest first, each once."""
    roots = dict.fromkeys(untuned_id(candidate_id) for candidate_id in elites)
    return [root for root in roots if parse_tunables(context.archive.candidate(root).source)]


def _tuned(context: SearchContext, round_: int) -> list[Candidate]:
    return context.archive.candidates(round=round_, origin=Origin.TUNE)


async def _sweep_one(context: SearchContext, root_id: str, round_: int, share: int, trials: int) -> None:
    """Measure up to `share` points of one kernel in this round; the sequence continues over rounds.

    Points are stored before they are measured and evaluations are kept, so a resume measures what is missing and then
    goes on.
    """
    root = await asyncio.to_thread(context.archive.candidate, root_id)
    base = await asyncio.to_thread(context.archive.evaluation, root_id)
    tunables = parse_tunables(root.source)
    if not tunables or base is None or base.speedup is None:
        return
    rng_seed = context.derived_seed("tune", root_id)
    while not exhausted(context.budget, await spent(context)):
        candidates = await _measured(context, root_id)
        trial_by_id = await _trials(context, candidates)
        done = sum(1 for c in candidates if c.round == round_)
        batch = [c for c in candidates if c.id not in trial_by_id]
        if not batch:
            count = min(BATCH, share - done)
            known = list(trial_by_id.values())
            points = next_points(tunables, known, base.speedup, rng_seed=rng_seed, planned=trials, count=max(0, count))
            batch = [_point(root, round_, len(candidates) + n, p, tunables) for n, p in enumerate(points)]
            done += len(batch)
        if not batch:
            return
        for candidate in batch:
            await asyncio.to_thread(context.archive.add_candidate, candidate)
        await asyncio.gather(*(_measure(context, c, done - len(batch) + n + 1, share) for n, c in enumerate(batch)))


async def _measured(context: SearchContext, root_id: str) -> list[Candidate]:
    """Return the tuned candidates of one kernel over all rounds, in the order of their numbers."""
    tuned = await asyncio.to_thread(context.archive.candidates, origin=Origin.TUNE)
    return sorted((c for c in tuned if c.parent_id == root_id), key=lambda c: int(c.id.rpartition("t")[2]))


async def _trials(context: SearchContext, candidates: list[Candidate]) -> dict[str, Trial]:
    found = {}
    for candidate in candidates:
        evaluation = await asyncio.to_thread(context.archive.evaluation, candidate.id, Purpose.TUNE)
        if evaluation is not None:
            found[candidate.id] = Trial(point=candidate.tunables, speedup=evaluation.speedup)
    return found


def _point(
    root: Candidate, round_: int, number: int, point: dict[str, str], tunables: tuple[Tunable, ...]
) -> Candidate:
    values = {t.name: point[t.name] for t in tunables}
    return Candidate(
        id=f"{root.id}t{number}",
        origin=Origin.TUNE,
        round=round_,
        idea_id=root.idea_id,
        parent_id=root.id,
        variation=root.variation,
        attempt=root.attempt,
        source=with_values(root.source, values),
        language=root.language,
        interface=root.interface,
        model=root.model,
        tunables=values,
    )


async def _measure(context: SearchContext, candidate: Candidate, number: int, share: int) -> None:
    evaluation = await evaluate(context, candidate, Purpose.TUNE)
    emit(
        {
            "event": "tune",
            "candidate_id": candidate.id,
            "values": candidate.tunables,
            "trial": number,
            "trials": share,
            "speedup": evaluation.speedup,
        }
    )
