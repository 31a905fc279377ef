"""A branch's step as its viewers see it, and its way on to another candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.graph.search.events import emit
from ridgeline.tools.records.keys import branch_id

if TYPE_CHECKING:
    from ridgeline.graph.state import BranchState, Stage
    from ridgeline.tools.records.search import Candidate


def branch_of_state(state: BranchState) -> str:
    """Return the id of the branch in this state."""
    return branch_id(state["idea_id"], state["variation"])


def branch_of_candidate(candidate: Candidate) -> str:
    """Return the id of the branch that a candidate was written in; of one without an idea it names no branch."""
    return branch_id(candidate.idea_id or "", candidate.variation)


def move(state: BranchState, candidate_id: str, stage: Stage) -> BranchState:
    """Return the update with which a branch goes on with this candidate."""
    return {"candidate_id": candidate_id, "stage": stage, "finished": [candidate_id]}


def announce(state: BranchState, candidate_id: str, stage: Stage) -> None:
    """Tell the viewers that a branch enters a step."""
    emit(
        {
            "event": "branch_stage",
            "branch": branch_of_state(state),
            "idea_id": state["idea_id"],
            "candidate_id": candidate_id,
            "stage": stage,
            "attempt": state.get("attempt", 0),
            "model": state["model"],
        }
    )
