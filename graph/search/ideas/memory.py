"""The archive as decisions read it: the ideas that were tried, the branches left unwritten."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.history.idea_results import idea_results
from ridgeline.graph.models.requests import TriedIdea
from ridgeline.graph.search.ideas.novelty import tries_left
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.keys import attempt_id
from ridgeline.tools.records.vocabulary import IdeaOutcome

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.state import BranchPlan


def tried_ideas(archive: Archive) -> tuple[TriedIdea, ...]:
    """Return every idea with what came of it, whole; `digest` says what of it a model is told.

    Engine failures are ignored: an idea with no other end may be proposed again. An earlier real failure is reported.
    """
    tried = [TriedIdea.from_json(r.to_json()) for r in idea_results(archive) if not r.is_unjudged]
    failed = (idea for idea in tried if idea.outcome is IdeaOutcome.IMPLEMENTATION_FAILED)
    left = {idea.id: tries_left(idea, tried) for idea in failed}
    return tuple(dataclasses.replace(idea, tries_left=left.get(idea.id, 0)) for idea in tried)


async def unwritten_branches(archive: Archive, state: Mapping[str, Any]) -> list[BranchPlan]:
    """Return the last round's branches of which no attempt is stored: those that a spent budget left without a kernel.

    A branch whose model failed is stored with the reason. A resumed search with a larger budget writes the others first.
    """
    planned: list[BranchPlan] = list(state.get("branches") or [])
    if not planned:
        return []
    stored = {c.id for c in await run_whole(archive.candidates, round=int(state.get("round", 0)))}
    return [branch for branch in planned if attempt_id(branch["idea_id"], branch["variation"], 0) not in stored]
