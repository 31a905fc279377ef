"""What earlier rounds say of the models and of progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ridgeline.graph.models.pool import Outcome, reward
from ridgeline.graph.models.requests import TriedIdea
from ridgeline.tools.records.vocabulary import Origin, Purpose, ReasonCode

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive


def model_outcomes(archive: Archive, before_round: int) -> list[Outcome]:
    """Return what each attempt of earlier rounds earned its model, against the best kernel before that round.

    Only finished rounds count, so that a resumed round decides as the interrupted one did. A kernel that the engine
    failed on earned nothing and cost nothing.
    """
    found = archive.evaluations(purpose=Purpose.SEARCH)
    evaluations = {e.candidate_id: e for e in found if e.reason_code is not ReasonCode.ENGINE_FAILED}
    judged = [(c, evaluations[c.id].speedup) for c in archive.candidates() if c.id in evaluations]
    before = {
        round_: max((s for c, s in judged if s is not None and c.round < round_), default=1.0)
        for round_ in {c.round for c, _ in judged}
    }
    return [
        Outcome(model=c.model, reward=reward(speedup, before[c.round]))
        for c, speedup in judged
        if c.origin is Origin.MODEL and c.round < before_round
    ]


def tried_ideas(archive: Archive) -> tuple[TriedIdea, ...]:
    """Return every idea with its best result or why it failed, as models are told; ideas that were not judged are left out.

    An engine's failure is no verdict on an idea: it may be had again, and an earlier attempt's failure stands before it.
    """
    rows = (_told(archive, row) for row in archive.tried_ideas())
    return tuple(TriedIdea.from_json(row) for row in rows if row is not None)


def _told(archive: Archive, row: dict[str, Any]) -> dict[str, Any] | None:
    if row["best_candidate_id"] is not None:
        return row
    ends = [archive.evaluation(candidate.id) for candidate in archive.candidates(idea_id=row["id"])]
    ended = [end for end in ends if end is not None]
    judged = [end for end in ended if end.reason_code is not ReasonCode.ENGINE_FAILED]
    if len(judged) == len(ended):
        return row
    last = judged[-1] if judged else None
    return row | {"failure": f"{last.status} ({last.reason_code}): {last.reason}"} if last else None
