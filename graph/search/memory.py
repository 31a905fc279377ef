"""The archive as decisions read it: the models' earnings, the ideas that were tried, the branches left unwritten."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.idea_results import idea_results
from ridgeline.graph.models.pool import Outcome, reward
from ridgeline.graph.models.requests import TriedIdea
from ridgeline.tools.records.keys import attempt_id
from ridgeline.tools.records.vocabulary import Origin, Purpose

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import BranchPlan


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


async def unwritten_branches(context: SearchContext, state: Mapping[str, Any]) -> list[BranchPlan]:
    """Return the last round's branches of which no attempt is stored: those that a spent budget left without a kernel.

    A branch whose model failed is stored with the reason. A resumed search with a larger budget writes the others first.
    """
    planned: list[BranchPlan] = list(state.get("branches") or [])
    if not planned:
        return []
    stored = {c.id for c in await asyncio.to_thread(context.archive.candidates, round=int(state.get("round", 0)))}
    return [branch for branch in planned if attempt_id(branch["idea_id"], branch["variation"], 0) not in stored]
