"""What earlier rounds say of the models and of progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.checkpoints.idea_results import idea_results
from ridgeline.graph.models.pool import Outcome, reward
from ridgeline.graph.models.requests import TriedIdea
from ridgeline.tools.records.vocabulary import Origin, Purpose

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive


def model_outcomes(archive: Archive, before_round: int) -> list[Outcome]:
    """Return what each attempt of earlier rounds earned its model, against the best kernel before that round.

    Only finished rounds count, so that a resumed round decides as the interrupted one did. Only judged kernels count:
    one that the engine failed on earned nothing and cost nothing.
    """
    evaluations = {e.candidate_id: e for e in archive.evaluations(purpose=Purpose.SEARCH)}
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
    """Return every idea with its best result or its failure, as models are told.

    Engine failures are ignored: an idea with no other end may be proposed again. An earlier real failure is reported.
    """
    return tuple(TriedIdea.from_json(r.to_json()) for r in idea_results(archive) if not r.is_unjudged)
