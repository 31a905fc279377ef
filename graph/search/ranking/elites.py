"""Elites: the kernels that the next round starts from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ridgeline.checkpoints.history.diagnoses import diagnosis, read_profile
from ridgeline.checkpoints.history.named_stages import largest_stage
from ridgeline.checkpoints.history.side_by_side import Ratios, measured_ratios
from ridgeline.checkpoints.history.sweeps import sweep_rows
from ridgeline.graph.models.requests import Elite
from ridgeline.graph.search.sources.structure import structure_of
from ridgeline.graph.search.sources.tuning import root_id
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import SEARCHED, Label, Origin

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive

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


async def ranked_elites(archive: Archive, standings: Sequence[Standing], count: int) -> list[Standing]:
    """Return the elites among `standings`, where measured side by side the winners first; see `choose_elites`."""
    return await run_whole(_ranked_elites, archive, standings, count)


def _ranked_elites(archive: Archive, standings: Sequence[Standing], count: int) -> list[Standing]:
    return choose_elites(winners_first(standings, measured_ratios(archive)), count)


def winners_first(standings: Sequence[Standing], ratios: Ratios) -> list[Standing]:
    """Return the kernels in their order, but for those that beat one ahead of them side by side: they come before it.

    A timing of its own is a kernel's luck in part; an alternating run of two decides between them.
    """
    by_id: dict[str, Standing] = {}
    for standing in standings:
        by_id.setdefault(standing.candidate.id, standing)
    beaten_by: dict[str, list[tuple[float, str]]] = {}
    for (first, second), ratio in ratios.items():
        if ratio > 1 and second in by_id:
            beaten_by.setdefault(first, []).append((-ratio, second))
    ordered: dict[str, Standing] = {}
    for name, standing in by_id.items():
        if name not in ordered:
            for _, winner in sorted(beaten_by.get(name, [])):
                ordered.setdefault(winner, by_id[winner])
        ordered.setdefault(name, standing)
    return list(ordered.values())


def choose_elites(standings: Sequence[Standing], count: int) -> list[Standing]:
    """Return at most `count` kernels in their order, no two of one structure, and of one idea only in two cases.

    A further kernel of an idea is FAR_AHEAD of the next idea's best, or there is no other idea for its place. A place
    stays empty rather than show a structure twice: what differs in constants is for tuning.
    """
    chosen: dict[str, Standing] = {}
    held: dict[str, Standing] = {}  # further kernels of ideas that have their place
    lineages: set[str] = set()
    structure = _Structures()
    for standing in standings:
        if len(chosen) >= count:
            break
        if (own := structure.of(standing)) in chosen:
            continue
        if standing.lineage in lineages:
            held.setdefault(own, standing)
            continue
        ahead = {s: h for s, h in held.items() if h.sure_speedup >= FAR_AHEAD * standing.sure_speedup}
        chosen |= ahead
        held = {s: h for s, h in held.items() if s not in ahead and s != own}
        chosen.setdefault(own, standing)
        lineages.add(standing.lineage)
    kept = [*chosen.values(), *held.values()][:count]
    places = {standing.candidate.id: place for place, standing in enumerate(standings)}
    return sorted(kept, key=lambda standing: places[standing.candidate.id])


@dataclass(slots=True)
class _Structures:
    """Structures of kernels; the points of a sweep have that of their root and are not read."""

    _known: dict[str, str] = field(default_factory=dict)

    def of(self, standing: Standing) -> str:
        """Return the fingerprint of a kernel's source."""
        root = root_id(standing.candidate)
        if root not in self._known:
            self._known[root] = structure_of(standing.candidate.source, standing.candidate.language)
        return self._known[root]


def best_of_ideas(standings: Sequence[Standing], ideas: Iterable[str]) -> list[Standing]:
    """Return the first correct kernel of each of these ideas that has one."""
    wanted = set(ideas)
    found: dict[str, Standing] = {}
    for standing in standings:
        if standing.candidate.idea_id in wanted:
            found.setdefault(standing.candidate.idea_id or "", standing)
    return list(found.values())


async def read_elites(archive: Archive, ids: Iterable[str]) -> tuple[Elite, ...]:
    """Return elites as models see them, with their sources and diagnoses; an id that is no correct kernel is left out."""
    found = [await read_elite(archive, candidate_id) for candidate_id in ids]
    return tuple(elite for elite in found if elite)


async def read_elite(archive: Archive, candidate_id: str | None) -> Elite | None:
    """Return one kernel as models see it, or None when there is no such correct kernel."""
    return await run_whole(_read_elite, archive, candidate_id) if candidate_id else None


def _read_elite(archive: Archive, candidate_id: str) -> Elite | None:
    try:
        candidate = archive.candidate(candidate_id)
    except KeyError:
        return None
    evaluation = archive.own_evaluation(candidate_id)
    timing = evaluation.timing if evaluation else None
    if evaluation is None or timing is None or evaluation.speedup is None:
        return None
    baselines = archive.baselines()
    profile = read_profile(archive, evaluation)
    return Elite(
        candidate_id=candidate.id,
        idea_title=archive.idea(candidate.idea_id).title if candidate.idea_id else f"{candidate.origin} kernel",
        source=candidate.source,
        median_ms=timing.median_ms or 0.0,
        speedup=evaluation.speedup,
        steady_ms=baselines.steady_ms(timing, evaluation.precision_class) if baselines else timing.median_ms,
        speedup_ci95=timing.speedup_ci95,
        was_busy=Label.BUSY_MACHINE in timing.labels,
        diagnosis=diagnosis(profile) if profile else "",
        largest_stage=largest_stage(profile) if profile else "",
        idea_id=candidate.idea_id,
        tuned_from=root_id(candidate) if candidate.origin is Origin.TUNE else "",
        parent_id=archive.idea(candidate.idea_id).parent_id if candidate.idea_id else None,
        sweep=sweep_rows(
            archive, root_id(candidate), archive.candidates(idea_id=candidate.idea_id, origin=Origin.TUNE)
        ),
    )
