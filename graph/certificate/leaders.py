"""Who is certified first: kernels that the search could not tell apart are measured against each other.

Taking the fastest of many noisy timings picks a lucky timing more often than the fastest kernel (the winner's curse).
So up to LEADERS kernels whose intervals reach the fastest one's are each timed in one alternating run with it, and the
best of these ratios decides.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ridgeline.graph.search.elites import Standing
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.measuring import gather_or_cancel
from ridgeline.graph.search.step_memory import compare_once
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.results import Build, Comparison
from ridgeline.tools.records.vocabulary import Status

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext

logger = logging.getLogger(__name__)

LEADERS = 3
"""Kernels compared at most: each after the first costs an alternating run of about 10 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """One kernel that may be the fastest; `versus_fastest` is None for the fastest by the search's own timings."""

    standing: Standing
    versus_fastest: Comparison | None = None  # the fastest's time / this one's

    @property
    def ratio(self) -> float:
        """Return how many times as fast as the search's fastest it is."""
        return self.versus_fastest.ratio if self.versus_fastest else 1.0

    def to_json(self) -> dict[str, Any]:
        """Return this leader's part of certificate.json."""
        timing, versus = self.standing.evaluation.timing, self.versus_fastest
        return {
            "candidate_id": self.standing.candidate.id,
            "speedup": self.standing.speedup,
            "speedup_ci95": list(timing.speedup_ci95) if timing and timing.speedup_ci95 else None,
            "ratio": self.ratio,
            "ratio_ci95": list(versus.ratio_ci95) if versus else None,
            "blocks": versus.blocks if versus else None,
        }


async def compare_leaders(context: SearchContext, standings: Sequence[Standing]) -> list[Leader]:
    """Return the leaders, the fastest by their common measurement first; one alone is not measured.

    A build or a comparison that the engine fails on leaves that kernel out, with a warning; where the fastest cannot be
    built again the others keep their order, for their certificates to decide.
    """
    tied = within_noise(standings)
    if len(tied) < 2:
        return [Leader(standing=standing) for standing in tied]
    fastest = tied[0]
    builds = await gather_or_cancel(*(_build(context, standing) for standing in tied))
    if builds[0] is None:
        return [Leader(standing=standing) for standing in tied]
    leaders = [Leader(standing=fastest)]
    for standing, build in zip(tied[1:], builds[1:], strict=True):
        if build is not None and build.key != builds[0].key:
            leaders += await _compared(context, (fastest, builds[0]), (standing, build))
    return sorted(leaders, key=lambda leader: -leader.ratio)


def within_noise(standings: Sequence[Standing]) -> list[Standing]:
    """Return the fastest kernel and those of the next whose interval reaches its own; all must beat eager."""
    faster = [standing for standing in standings if standing.speedup > 1]
    if not faster:
        return []
    least = _interval(faster[0])[0]
    return [faster[0], *(s for s in faster[1:] if _interval(s)[1] >= least)][:LEADERS]


def _interval(standing: Standing) -> tuple[float, float]:
    timing = standing.evaluation.timing
    return timing.speedup_ci95 if timing and timing.speedup_ci95 else (standing.speedup, standing.speedup)


async def _build(context: SearchContext, standing: Standing) -> Build | None:
    """Return a leader's build, None where there is none."""
    candidate = standing.candidate
    try:
        build = await context.engine.submit(CompileTask(problem=await context.described(), candidate=candidate))
    except EngineError as error:
        logger.warning("%s cannot be built again: %s", candidate.id, error)
        emit({"event": "warning", "message": f"{candidate.id} cannot be built again: {error}"})
        return None
    return build if build.status is Status.OK else None


async def _compared(
    context: SearchContext, fastest: tuple[Standing, Build], other: tuple[Standing, Build]
) -> list[Leader]:
    """Return `other` as a leader, from the archive when it was measured before; nothing when it cannot be measured."""
    (first, first_build), (second, second_build) = fastest, other
    pair = (first.candidate, first_build), (second.candidate, second_build)
    try:
        found = await compare_once(context, *pair, of=second.candidate)
    except EngineError as error:
        logger.warning("%s is not compared with %s: %s", second.candidate.id, first.candidate.id, error)
        emit({"event": "warning", "message": f"{second.candidate.id} is not compared with the fastest: {error}"})
        return []
    return [Leader(standing=second, versus_fastest=found)]
