"""Sweep the values that the elites declare as tunable; no token is spent."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.search.budget import exhausted, spent
from ridgeline.graph.search.elites import choose_elites, read_standings
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.measuring import evaluate, gather_or_cancel, measure_again
from ridgeline.graph.search.profiling import profile_elites
from ridgeline.graph.search.rounds import is_progress, save_summary, stop_reason, tell_round
from ridgeline.graph.search.tuning import Trial, Tunable, next_points, parse_tunables, root_id, with_values
from ridgeline.tools.errors import NotBegun
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Purpose

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import SearchState

logger = logging.getLogger(__name__)

BATCH = 4
"""Points chosen from the same knowledge: their builds run side by side while one is timed."""


@dataclass(slots=True, kw_only=True)
class _Sweep:
    """A round's trials, how many of them are measured, and the turns in which they begin."""

    round: int
    trials: int
    measured: int
    turns: asyncio.Semaphore
    is_stopped: bool = False


async def tune(state: SearchState, context: SearchContext) -> SearchState:
    """Measure this round's tuned points and return the elites again; resumes at the first point not yet measured."""
    round_ = state.get("round", 0)
    plan = context.plan(state.get("max_rounds"))
    await measure_again(context)
    await _sweep(context, state, round_, plan.trials(round_))
    standings = await asyncio.to_thread(read_standings, context.archive)
    elites = choose_elites(standings, plan.elites)
    best = standings[0] if standings else None
    await profile_elites(context, elites)
    stalled = 0 if is_progress(best, state) else state.get("stalled_rounds", 0)
    tell_round(plan, await save_summary(context, round_, elites, best))
    outcome, reason = await stop_reason(context, plan, round_=round_, stalled_rounds=stalled, best=best)
    if outcome:
        emit({"event": "stopped", "outcome": outcome, "reason": reason})
    return {
        "elites": [s.candidate.id for s in elites],
        "best_id": best.candidate.id if best else None,
        "best_speedup": best.speedup if best else None,
        "best_sure_speedup": best.sure_speedup if best else None,
        "stalled_rounds": stalled,
        "outcome": outcome,
        "route": "certify" if outcome else "ideate",
    }


async def _sweep(context: SearchContext, state: SearchState, round_: int, trials: int) -> None:
    """Share the round's trials among the elites; what some leave unused the fastest gets, then the next.

    The shares are swept side by side: one kernel's points do not depend on another's, so no device waits for the builds
    or for the last measurement of a batch while there is another kernel to go on with.
    """
    roots = await asyncio.to_thread(_tunable_roots, context, state.get("elites", []))
    measured = await _trials(context, await asyncio.to_thread(_tuned, context, round_))
    turns = asyncio.Semaphore(_at_once(context))
    sweep = _Sweep(round=round_, trials=trials, measured=len(measured), turns=turns)
    shares = _shares(trials, len(roots))
    await gather_or_cancel(
        *(_sweep_one(context, root, sweep, share) for root, share in zip(roots, shares, strict=True))
    )
    for root in roots:
        done = await asyncio.to_thread(_tuned, context, round_)
        others = sum(1 for candidate in done if root_id(candidate) != root.id)
        await _sweep_one(context, root, sweep, trials - others)


def _at_once(context: SearchContext) -> int:
    """Return how many points may be under way: with a limit on time, those that may overshoot it."""
    if context.budget.wall_s is None and context.budget.gpu_s is None:
        return sys.maxsize  # nothing that tuning spends is limited: the engine queues what it likes
    return context.devices + BATCH  # each device times one while the builds for the next run side by side


def _shares(trials: int, kernels: int) -> list[int]:
    """Return how many trials each kernel gets, the first ones one more where they do not come out even."""
    return [(trials + place) // kernels for place in reversed(range(kernels))]


def _tunable_roots(context: SearchContext, elites: Sequence[str]) -> list[Candidate]:
    """Return the kernels behind the elites that declare tunables, fastest first, each once."""
    ids = dict.fromkeys(root_id(context.archive.candidate(candidate_id)) for candidate_id in elites)
    roots = [context.archive.candidate(candidate_id) for candidate_id in ids]
    return [root for root in roots if parse_tunables(root.source)]


def _tuned(context: SearchContext, round_: int) -> list[Candidate]:
    return context.archive.candidates(round=round_, origin=Origin.TUNE)


async def _sweep_one(context: SearchContext, root: Candidate, sweep: _Sweep, share: int) -> None:
    """Measure up to `share` points of one kernel in this round; the sequence continues over rounds.

    Points are stored before they are measured and evaluations are kept, so a resume measures what is missing and then
    goes on.
    """
    base = await asyncio.to_thread(context.archive.evaluation, root.id)
    tunables = parse_tunables(root.source)
    if not tunables or base is None or base.speedup is None:
        return
    rng_seed = context.derived_seed("tune", root.id)
    while not exhausted(context.budget, await spent(context)):
        candidates = await _measured(context, root)
        trial_by_id = await _trials(context, candidates)
        done = sum(1 for c in candidates if c.round == sweep.round)
        batch = [c for c in candidates if c.id not in trial_by_id]
        if not batch:
            count = max(0, min(BATCH, share - done))
            known = list(trial_by_id.values())
            points = next_points(tunables, known, base.speedup, rng_seed=rng_seed, planned=sweep.trials, count=count)
            ids = await asyncio.to_thread(_free_ids, context, root, len(candidates), len(points))
            batch = [_point(root, sweep.round, i, p, tunables) for i, p in zip(ids, points, strict=True)]
        if not batch:
            return
        # at once: points of a batch stored in part would be measured on a resume, and the rest chosen knowing them
        await asyncio.to_thread(context.archive.add_candidates, batch)
        await gather_or_cancel(*(_measure(context, candidate, sweep) for candidate in batch))


def _free_ids(context: SearchContext, root: Candidate, first: int, count: int) -> list[str]:
    """Return the next `count` ids of points; a number whose id is taken, as by a seed called fastt3, is passed over."""
    taken = {candidate.id for candidate in context.archive.candidates()}
    ids = (f"{root.id}t{number}" for number in itertools.count(first))
    return list(itertools.islice((i for i in ids if i not in taken), count))


async def _measured(context: SearchContext, root: Candidate) -> list[Candidate]:
    """Return the tuned candidates of one kernel over all rounds, in the order in which they were chosen."""
    tuned = await asyncio.to_thread(context.archive.candidates, origin=Origin.TUNE)
    return [candidate for candidate in tuned if root_id(candidate) == root.id]


async def _trials(context: SearchContext, candidates: list[Candidate]) -> dict[str, Trial]:
    found = {}
    for candidate in candidates:
        evaluation = await asyncio.to_thread(context.archive.evaluation, candidate.id, Purpose.TUNE)
        if evaluation is not None:
            found[candidate.id] = Trial(point=candidate.tunables, speedup=evaluation.speedup)
    return found


def _point(
    root: Candidate, round_: int, candidate_id: str, point: dict[str, str], tunables: tuple[Tunable, ...]
) -> Candidate:
    values = {t.name: point[t.name] for t in tunables}
    return Candidate(
        id=candidate_id,
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


async def _measure(context: SearchContext, candidate: Candidate, sweep: _Sweep) -> None:
    """Measure one point when its turn comes; one that a budget used up by then leaves out stays stored for later.

    Raises NotBegun for a stop, and so does every later turn: the engine drops only what waits inside of it.
    """
    async with sweep.turns:
        if sweep.is_stopped:
            raise NotBegun(f"{candidate.id}: a stop was asked for before it began")
        if exhausted(context.budget, await spent(context)):
            return
        try:
            evaluation = await evaluate(context, candidate, Purpose.TUNE)
        except NotBegun:
            sweep.is_stopped = True
            raise
    sweep.measured += 1
    emit(
        {
            "event": "tune",
            "candidate_id": candidate.id,
            "values": candidate.tunables,
            "trial": sweep.measured,
            "trials": sweep.trials,
            "speedup": evaluation.speedup,
        }
    )
