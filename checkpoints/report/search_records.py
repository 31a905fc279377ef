"""The records of a search that several parts of report.html show, read once for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.gains import SideBySide, measured_side_by_side
from ridgeline.checkpoints.history.lineage import findings
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.problem import Description
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate, Idea
from ridgeline.tools.records.vocabulary import SEARCHED


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecords:
    """One search as its archive holds it."""

    run: RunRecord
    description: Description | None
    baselines: Baselines | None
    ideas: Sequence[Idea]
    candidates: Sequence[Candidate]  # in the order in which they were made, as ideas are
    found: Mapping[str, Evaluation | None]  # by each candidate's id; None before it is judged
    ranked: Sequence[Evaluation]  # fastest first; see checkpoints/ranking.py
    pairs: SideBySide

    @classmethod
    def read(cls, archive: Archive) -> SearchRecords:
        """Return the records of an archive's search."""
        candidates, found = archive.candidates(), findings(archive)
        return cls(
            run=archive.run(),
            description=archive.description(),
            baselines=archive.baselines(),
            ideas=archive.ideas(),
            candidates=candidates,
            found={candidate.id: found.get(candidate.id) for candidate in candidates},
            ranked=archive.ranking(SEARCHED),
            pairs=measured_side_by_side(archive),
        )

    @property
    def titles(self) -> dict[str, str]:
        """Return the ideas' titles by their ids."""
        return {idea.id: idea.title for idea in self.ideas}
