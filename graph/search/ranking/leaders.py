"""Leaders: kernels that the search could not tell apart, measured against each other.

Taking the fastest of many noisy timings picks a lucky timing more often than the fastest kernel (the winner's curse).
So up to LEADERS kernels whose intervals reach the fastest one's are each timed in one alternating run with it, and the
best of these ratios decides. Before one is certified that takes a certificate's time; before a language model is asked
for ideas it takes a search's, so that the elites it starts from are the fastest indeed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.history.repeated_sources import repeated_sources
from ridgeline.checkpoints.history.side_by_side import measured_ratios
from ridgeline.graph.search.budget import charge_comparison, exhausted, spent
from ridgeline.graph.search.events import emit, warn
from ridgeline.graph.search.ranking.elites import Standing, winners_first
from ridgeline.graph.search.ranking.turns import BuiltStanding, Uncompared, time_in_turns
from ridgeline.graph.search.running.gathering import gather_or_cancel
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.results import Build, Comparison
from ridgeline.tools.records.vocabulary import Origin, Purpose, Status

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext

logger = logger_of(__name__)

LEADERS = 3
"""Kernels compared at most, a seed kernel aside: each after the first costs an alternating run of about 10 s."""


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


async def compare_for_elites(context: SearchContext, standings: Sequence[Standing]) -> None:
    """Have the leaders compared as far as the search did not before; the archive then holds who won.

    The offline model composes structures and reads no kernel: it is spared the time. So is a search whose budget is spent.
    """
    if not context.models.reads_prompts or len(standings) < 2 or exhausted(context.budget, await spent(context)):
        return
    # A winner of an earlier round comes before the kernels that it beat, and so among the few that are compared.
    ratios = await run_whole(measured_ratios, context.archive)
    ordered = [standings[0], *winners_first(standings[1:], ratios)]
    await compare_leaders(context, ordered, purpose=Purpose.SEARCH)


async def compare_leaders(
    context: SearchContext, standings: Sequence[Standing], *, purpose: Purpose = Purpose.CERTIFY
) -> list[Leader]:
    """Return the leaders, the fastest by their common measurement first; one alone is not measured.

    A build or a comparison that the engine fails on leaves that kernel out, with a warning; where the fastest cannot be
    built again the others keep their order, for their certificates to decide. A kernel that fails where it is compared
    has lost; when that is the fastest, the others are compared with the next.
    """
    tied = within_noise(standings)
    if len(tied) < 2:
        return [Leader(standing=standing) for standing in tied]
    builds = await gather_or_cancel(*(_build(context, standing) for standing in tied))
    if builds[0] is None:
        return [Leader(standing=standing) for standing in tied]
    built = [BuiltStanding(standing=s, build=b) for s, b in zip(tied, builds, strict=True) if b is not None]
    while built:
        fastest, *others = built
        leaders, lost = await _against(context, fastest, others, purpose)
        if fastest not in lost:
            return sorted(leaders, key=lambda leader: -leader.ratio)
        built = [each for each in others if each not in lost]
    return []


def within_noise(standings: Sequence[Standing]) -> list[Standing]:
    """Return the fastest kernel and those of the next whose interval reaches its own; all must beat eager.

    They are LEADERS at most, and the best seed kernel of all that reach it: what a search is to beat is never cut. Of a
    source that was written again the first kernel stands for the others, which are no other kernels.
    """
    faster = _of_new_sources([standing for standing in standings if standing.speedup > 1])
    if not faster:
        return []
    least = _interval(faster[0])[0]
    tied = [faster[0], *(s for s in faster[1:] if _interval(s)[1] >= least)]
    leaders, rest = tied[:LEADERS], tied[LEADERS:]
    if any(_is_seed(each) for each in leaders):
        return leaders
    return [*leaders, *[each for each in rest if _is_seed(each)][:1]]


def _of_new_sources(standings: Sequence[Standing]) -> list[Standing]:
    """Return the standings without those that a model wrote again, each in its place."""
    repeats = repeated_sources(standing.candidate for standing in standings)
    return [each for each in standings if each.candidate.id not in repeats or _is_seed(each)]


def _is_seed(standing: Standing) -> bool:
    return standing.candidate.origin is Origin.SEED


def _interval(standing: Standing) -> tuple[float, float]:
    timing = standing.evaluation.timing
    return timing.speedup_ci95 if timing and timing.speedup_ci95 else (standing.speedup, standing.speedup)


async def _build(context: SearchContext, standing: Standing) -> Build | None:
    """Return a leader's build, None where there is none."""
    candidate = standing.candidate
    try:
        build = await context.measure(CompileTask(problem=context.described, candidate=candidate))
    except EngineError as error:
        _warn(f"{candidate.id} cannot be built again: {error}")
        return None
    return build if build.status is Status.OK else None


async def _against(
    context: SearchContext, fastest: BuiltStanding, others: Sequence[BuiltStanding], purpose: Purpose
) -> tuple[list[Leader], list[BuiltStanding]]:
    """Return the fastest with those that were measured beside it, and those that failed there; no more once it did."""
    leaders, lost = [Leader(standing=fastest.standing)], list[BuiltStanding]()
    differing = [other for other in others if other.build.key != fastest.build.key]
    for number, other in enumerate(differing, start=1):
        both = [fastest.id, other.id]
        emit({"event": "comparing", "candidate_ids": both, "place": (number, len(differing))})
        found = await _compared(context, fastest, other, purpose)
        if isinstance(found, Comparison):
            leaders.append(Leader(standing=other.standing, versus_fastest=found))
            continue
        failed = found.failed if found else None
        emit({"event": "not_compared", "candidate_ids": both, "failed": failed.id if failed else None})
        if failed is not None:
            lost.append(failed)
        if fastest in lost:
            break
    return leaders, lost


async def _compared(
    context: SearchContext, fastest: BuiltStanding, other: BuiltStanding, purpose: Purpose
) -> Comparison | Uncompared | None:
    """Return how the alternating run of the two ended, None when the engine failed; but for figures with a warning."""
    started_s = time.monotonic()
    try:
        found = await time_in_turns(context, fastest, other, purpose=purpose)
    except EngineError as error:
        _warn(f"{other.id} is not compared with the fastest: {error}")
        return None
    if purpose is Purpose.SEARCH:  # what a certificate costs is entered as a whole
        took_s = time.monotonic() - started_s
        await run_whole(charge_comparison, context, fastest.id, other.id, took_s)
    if isinstance(found, Uncompared):
        failed = found.failed_id or f"{fastest.id} or {other.id}"
        _warn(f"{failed} failed where {fastest.id} and {other.id} were compared: {found.reason}")
    return found


def _warn(message: str) -> None:
    logger.warning("%s", message)
    warn(message)
