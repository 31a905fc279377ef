"""What LangGraph checkpoints: ids, counters and scalars in plain JSON types; everything else lies in the archive.

State grows with the square of a list kept in it, so `finished` holds one round's ids and is emptied by `ideate`.
"""

from __future__ import annotations

from typing import Annotated, TypedDict

KEPT_IDS = 512
"""More branches than a round has; a guard against growth, not a setting."""


def append_trimmed(left: list[str], right: list[str]) -> list[str]:
    """Join two lists of ids, keeping the newest KEPT_IDS; an id that is already there stays where it is."""
    known = set(left)
    return (left + [item for item in right if item not in known])[-KEPT_IDS:]


class SearchInput(TypedDict, total=False):
    """What starts a search, or extends a finished one."""

    max_rounds: int


class SearchOutput(TypedDict, total=False):
    """What a search returns; the measurements are in its archive."""

    outcome: str  # finished, budget, at_floor, stalled, no_gain
    round: int
    best_id: str | None
    best_speedup: float | None
    certified: bool


class BranchPlan(TypedDict):
    """One planned branch of a round."""

    idea_id: str
    variation: int
    model: str


class SearchState(TypedDict, total=False):
    """The whole search."""

    max_rounds: int
    round: int  # 0 until the first ideation
    ideas: list[str]  # this round's
    branches: list[BranchPlan]  # this round's
    finished: Annotated[list[str], append_trimmed]  # this round's last candidate of each branch
    elites: list[str]  # candidate ids, fastest first
    best_id: str | None
    best_speedup: float | None
    best_sure_speedup: float | None  # the lower end of its interval: what a round has to raise
    stalled_rounds: int
    outcome: str  # "" while the search goes on
    route: str  # the node after select or tune
    certified: bool


class BranchState(TypedDict, total=False):
    """One branch: an idea, a variation, and how far its attempts are."""

    round: int
    idea_id: str
    variation: int
    model: str
    attempt: int
    candidate_id: str
    stage: str  # the next step: compile, verify, benchmark, write, or done
    finished: list[str]


class BranchOutput(TypedDict, total=False):
    """All that leaves a branch; a further shared key would collide with its siblings' at fan-in."""

    finished: list[str]
