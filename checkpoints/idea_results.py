"""The result of each idea of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Idea
from ridgeline.tools.records.vocabulary import SEARCHED


@dataclass(frozen=True, slots=True, kw_only=True)
class IdeaResult:
    """One idea with its best kernel, or the reason why it has none."""

    idea: Idea
    best: Evaluation | None
    failure: str  # "" with a best kernel, and while no candidate has ended
    candidates: int  # written for the idea or tuned from it
    is_unjudged: bool  # the engine failed on every candidate that ended: no verdict on the idea

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `show --json`: the idea's fields and how it ended."""
        return self.idea.to_json() | {
            "best_candidate_id": self.best.candidate_id if self.best else None,
            "best_speedup": self.best.speedup if self.best else None,
            "failure": self.failure,
            "candidates": self.candidates,
        }


def idea_results(archive: Archive) -> list[IdeaResult]:
    """Return the results of all ideas, in the order of the ideas."""
    fastest: dict[str, Evaluation] = {}
    for evaluation in archive.ranking(SEARCHED):
        fastest.setdefault(evaluation.candidate_id, evaluation)
    return [_result(archive, idea, fastest) for idea in archive.ideas()]


def _result(archive: Archive, idea: Idea, fastest: dict[str, Evaluation]) -> IdeaResult:
    own = [candidate.id for candidate in archive.candidates(idea_id=idea.id)]
    best = next((evaluation for candidate_id, evaluation in fastest.items() if candidate_id in own), None)
    judged = [] if best else [e for candidate_id in own if (e := archive.evaluation(candidate_id))]
    unjudged = [] if best or judged else [f.as_evaluation() for name in own for f in archive.engine_failures(name)]
    last = next(reversed(judged or unjudged), None)
    return IdeaResult(
        idea=idea,
        best=best,
        failure=f"{last.status} ({last.reason_code}): {last.reason}".rstrip(": ") if last else "",
        candidates=len(own),
        is_unjudged=bool(unjudged),
    )
