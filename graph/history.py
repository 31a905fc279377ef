"""What earlier rounds say of the models and of progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.graph.pool import Outcome, reward
from ridgeline.tools.records import Origin, Purpose

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive


def model_outcomes(archive: Archive, before_round: int) -> list[Outcome]:
    """Return what each attempt of earlier rounds earned its model, against the best kernel before that round.

    Only finished rounds count, so that a resumed round decides as the interrupted one did.
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
