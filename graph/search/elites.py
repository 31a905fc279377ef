"""Elites: the kernels that the next round starts from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.models.requests import Elite
from ridgeline.graph.search.tuning import root_id
from ridgeline.tools.records.results import Evaluation, Profile
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import SEARCHED, Purpose

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext

FAR_AHEAD = 1.15
"""Factor by which a second kernel of one idea must beat the next idea's best to take that idea's place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A correct kernel with the evaluation that ranks it."""

    candidate: Candidate
    evaluation: Evaluation

    @property
    def lineage(self) -> str:
        """Return the idea of the kernel, or the kernel's own id where it has no idea; elites differ in their lineage."""
        return self.candidate.idea_id or root_id(self.candidate)

    @property
    def speedup(self) -> float:
        """Return eager's time / this kernel's."""
        return self.evaluation.speedup or 0.0

    @property
    def sure_speedup(self) -> float:
        """Return the lower end of the speedup's interval, by which kernels are ranked."""
        return self.evaluation.sure_speedup or 0.0

    @property
    def median_ms(self) -> float:
        """Return the median time of a call."""
        timing = self.evaluation.timing
        return timing.median_ms or 0.0 if timing else 0.0


def read_standings(archive: Archive) -> list[Standing]:
    """Return every correct kernel of the search, fastest first."""
    return [Standing(candidate=archive.candidate(e.candidate_id), evaluation=e) for e in archive.ranking(SEARCHED)]


def choose_elites(standings: Sequence[Standing], count: int) -> list[Standing]:
    """Return `count` kernels, fastest first, no two of one idea unless the second is FAR_AHEAD of the next idea."""
    chosen: list[Standing] = []
    held: list[Standing] = []
    seen: set[str] = set()
    for standing in standings:
        if standing.lineage in seen:
            held.append(standing)
            continue
        ahead = [h for h in held if h.sure_speedup >= FAR_AHEAD * standing.sure_speedup]
        chosen += ahead
        held = [h for h in held if h not in ahead]
        chosen.append(standing)
        seen.add(standing.lineage)
    chosen = chosen[:count] + held[: max(0, count - len(chosen))]
    return sorted(chosen, key=standings.index)


async def read_elites(context: SearchContext, ids: Sequence[str]) -> tuple[Elite, ...]:
    """Return elites as models see them, with their sources and diagnoses; an id that is no correct kernel is left out."""
    found = [await read_elite(context, candidate_id) for candidate_id in ids]
    return tuple(elite for elite in found if elite)


async def read_elite(context: SearchContext, candidate_id: str | None) -> Elite | None:
    """Return one kernel as models see it, or None when there is no such correct kernel."""
    return await asyncio.to_thread(_read_elite, context.archive, candidate_id) if candidate_id else None


def _read_elite(archive: Archive, candidate_id: str) -> Elite | None:
    try:
        candidate = archive.candidate(candidate_id)
    except KeyError:
        return None
    evaluation = archive.evaluation(candidate_id) or archive.evaluation(candidate_id, Purpose.TUNE)
    timing = evaluation.timing if evaluation else None
    if evaluation is None or timing is None or evaluation.speedup is None:
        return None
    profile = archive.find("profiles", evaluation.key)
    return Elite(
        candidate_id=candidate.id,
        idea_title=archive.idea(candidate.idea_id).title if candidate.idea_id else f"{candidate.origin} kernel",
        source=candidate.source,
        median_ms=timing.median_ms or 0.0,
        speedup=evaluation.speedup,
        diagnosis=diagnosis(Profile.from_json(dict(profile))) if profile else "",
    )


def diagnosis(profile: Profile) -> str:
    """Return a profile in a sentence or two."""
    parts = [f"{profile.bound}-bound"]
    if profile.fraction_of_floor is not None:
        parts.append(f"at {profile.fraction_of_floor:.0%} of the floor's rate")
    if profile.achieved_gbps is not None:
        parts.append(f"{profile.achieved_gbps:.1f} GB/s")
    if profile.achieved_gflops:
        parts.append(f"{profile.achieved_gflops:.1f} GFLOP/s")
    return ", ".join(parts) + "." + "".join(f" {note}." for note in profile.notes)
