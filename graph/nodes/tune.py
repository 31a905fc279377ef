"""Sweep the values that the elites declare as tunable; no token is spent."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.search.budget import exhausted, spent
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.judging.judging import judge_candidate
from ridgeline.graph.search.rounds.closing import close_round
from ridgeline.graph.search.running.gathering import gather_or_cancel
from ridgeline.graph.search.sources.tuning import (
    FAR_BEHIND,
    MeasuredPoint,
    Tunable,
    likely_points,
    next_points,
    parse_tunables,
    point_of,
    root_id,
    shared_trials,
    with_values,
)
from ridgeline.tools.errors import NotBegun
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Purpose

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import SearchState

logger = logger_of(__name__)

BATCH = 4
"""Points chosen from the same knowledge: their builds run side by side while one is timed."""


@dataclass(slots=True, kw_only=True)
class _Sweep:
    """A round's trials: how many may be measured, how many are, and the turns in which they begin."""

    round: int
    trials: int
    measured: int
    turns: asyncio.Semaphore
    is_stopped: bool = False


async def tune(state: SearchState, context: SearchContext) -> SearchState:
    """Measure this round's tuned points and return the elites again; resumes at the first point not yet measured."""
    round_ = state.get("round", 0)
    plan = context.plan(state.get("max_rounds"))
    await _sweep(context, state, round_, plan.trials(round_))
    return await close_round(context, plan, state, stalled_rounds=state.get("stalled_rounds", 0))


async def _sweep(context: SearchContext, state: SearchState, round_: int, trials: int) -> None:
    """Share the round's trials among the elites by promise; the fastest gets what others leave unused, then the next.

    An elite that is far behind gets none: see `shared_trials`. The shares are swept side by side: one kernel's points do
    not depend on another's, so no device waits for the builds or for the last measurement of a batch while there is another
    kernel to go on with.
    """
    roots, shares = await run_whole(_shared, context, state.get("elites", []), trials)
    turns = asyncio.Semaphore(_at_once(context))
    measured = await run_whole(_count_ended, context, round_)
    sweep = _Sweep(round=round_, trials=trials, measured=measured, turns=turns)
    await gather_or_cancel(
        *(_sweep_one(context, root, sweep, share) for root, share in zip(roots, shares, strict=True))
    )
    for root in roots:
        done = await run_whole(_tuned, context.archive, round_)
        others = sum(1 for candidate in done if root_id(candidate) != root.id)
        await _sweep_one(context, root, sweep, trials - others)


def _at_once(context: SearchContext) -> int:
    """Return how many points may be under way at once; with a limit on time, as many as may overshoot the limit."""
    if context.budget.wall_s is None and context.budget.gpu_s is None:
        return sys.maxsize  # no limit on time: the engine may queue all of them
    return context.measuring.devices + BATCH  # each device times one while the builds for the next run side by side


def _shared(context: SearchContext, elites: Sequence[str], trials: int) -> tuple[list[Candidate], list[int]]:
    """Return the kernels behind the elites that declare tunables, each once and in the elites' order, and their trials.

    A kernel's speed is that of its fastest elite. One that is not tunable still says what the others are behind of.
    """
    speeds: dict[str, float] = {}
    for candidate_id in elites:
        root = root_id(context.archive.candidate(candidate_id))
        speeds[root] = max(speeds.get(root, 0.0), _speed(context.archive, candidate_id))
    fastest = max(speeds.values(), default=0.0)
    roots = [context.archive.candidate(name) for name, speed in speeds.items() if speed > FAR_BEHIND * fastest]
    tunable = [root for root in roots if parse_tunables(root.source)]
    return tunable, shared_trials(trials, [speeds[root.id] for root in tunable])


def _speed(archive: Archive, candidate_id: str) -> float:
    evaluation = archive.own_evaluation(candidate_id)
    return (evaluation.sure_speedup if evaluation else None) or 0.0


def _tuned(archive: Archive, round_: int) -> list[Candidate]:
    return archive.candidates(round=round_, origin=Origin.TUNE)


async def _sweep_one(context: SearchContext, root: Candidate, sweep: _Sweep, share: int) -> None:
    """Measure up to `share` points of one kernel in this round; the sequence continues over rounds.

    Points are stored before they are measured and evaluations are kept, so a resume measures what is missing and then
    goes on.
    """
    base = await run_whole(context.archive.evaluation, root.id)
    tunables = parse_tunables(root.source)
    if not tunables or base is None or base.speedup is None:
        return
    rng_seed = context.derived_seed("tune", root.id)
    elsewhere = await run_whole(_judged_elsewhere, context, root, tunables)
    while not exhausted(context.budget, await spent(context)):
        candidates, trial_by_id = await run_whole(_points_so_far, context, root)
        done = sum(1 for c in candidates if c.round == sweep.round)
        batch = [c for c in candidates if c.id not in trial_by_id]
        if not batch:
            count = max(0, min(BATCH, share - done))
            known = list(trial_by_id.values())
            points = next_points(
                tunables, known, base.speedup, rng_seed=rng_seed, planned=sweep.trials, count=count, elsewhere=elsewhere
            )
            ids = await run_whole(_free_ids, context.archive, root, len(candidates), len(points))
            batch = [_point(root, sweep.round, i, p, tunables) for i, p in zip(ids, points, strict=True)]
        if not batch:
            return
        # One write for the batch: a resume would measure the points of a batch stored in part, and choose the rest by them.
        await run_whole(context.archive.add_candidates, batch)
        await gather_or_cancel(*(_measure(context, candidate, sweep) for candidate in batch))


def _judged_elsewhere(context: SearchContext, root: Candidate, tunables: tuple[Tunable, ...]) -> list[dict[str, str]]:
    """Return the points whose source is that of a kernel which was judged by itself: often a sibling, with other values.

    Measured again, the luckier of two figures of one kernel would lead. A source that was measured as a point too, here or
    in a recorded search, is none of them: its result is there.
    """
    archive, decisions = context.archive, context.decisions
    sources = {candidate.id: candidate.source for candidate in archive.candidates()}
    by_itself, as_point = (
        {sources[evaluation.candidate_id] for evaluation in archive.evaluations(purpose=purpose)}
        for purpose in (Purpose.SEARCH, Purpose.TUNE)
    )
    likely = likely_points(root.source, tunables, sorted(by_itself - as_point))
    points = (point_of(root.source, tunables, source) for source in likely if not decisions.was_tuned(source))
    return [point for point in points if point is not None]


def _free_ids(archive: Archive, root: Candidate, first: int, count: int) -> list[str]:
    """Return the next `count` ids of points, without those that are taken, as by a seed called fastt3."""
    taken = {candidate.id for candidate in archive.candidates()}
    ids = (f"{root.id}t{number}" for number in itertools.count(first))
    return list(itertools.islice((i for i in ids if i not in taken), count))


def _count_ended(context: SearchContext, round_: int) -> int:
    return len(_trials(context, _tuned(context.archive, round_)))


def _points_so_far(context: SearchContext, root: Candidate) -> tuple[list[Candidate], dict[str, MeasuredPoint]]:
    """Return one kernel's tuned candidates of all rounds, in the order in which they were chosen, and their trials."""
    points = [c for c in context.archive.candidates(origin=Origin.TUNE) if root_id(c) == root.id]
    return points, _trials(context, points)


def _trials(context: SearchContext, candidates: list[Candidate]) -> dict[str, MeasuredPoint]:
    """Return the points that ended by their candidates; a point that the engine failed on counts in this session."""
    found = {}
    for candidate in candidates:
        evaluation = context.archive.evaluation(candidate.id, Purpose.TUNE)
        if evaluation is not None or (candidate.id, Purpose.TUNE) in context.measuring.unjudged:
            found[candidate.id] = MeasuredPoint(
                point=candidate.tunables, speedup=evaluation.speedup if evaluation else None
            )
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
    """Measure one point when its turn comes; once the budget is used up, the point stays stored for a later session.

    Raises:
        NotBegun: a stop was asked for, and so of every later turn: the engine drops only what waits inside of it.
    """
    async with sweep.turns:
        if sweep.is_stopped:
            raise NotBegun(f"{candidate.id}: a stop was asked for before it began")
        if exhausted(context.budget, await spent(context)):
            return
        try:
            ended = await judge_candidate(context, candidate, Purpose.TUNE)
        except NotBegun:
            sweep.is_stopped = True
            raise
    sweep.measured += 1
    emit(
        {
            "event": "tune",
            "candidate_id": candidate.id,
            "values": dict(candidate.tunables),  # a viewer's own: the archive gives this record again
            "trial": sweep.measured,
            "trials": sweep.trials,
            "speedup": ended.speedup if isinstance(ended, Evaluation) else None,
        }
    )
