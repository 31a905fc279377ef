"""The state that LangGraph checkpoints: ids, counters and scalars in plain JSON types. The archive has everything else.

Enumerations are stored as their values: a host's checkpointer refuses types that are not registered with it.

Every checkpoint holds the whole state, so a list that only grows would cost the square of its length: `finished` holds
one round's ids, and `ideate` empties it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from ridgeline.tools.records.vocabulary import SearchOutcome

GRAPH_VERSION = 1
"""The version of the checkpoints' format; raise it when a node's name, an edge or the state takes on another meaning."""

KEPT_IDS = 512
"""A guard against growth, not a setting: a round has fewer branches."""


def append_trimmed(left: list[str], right: list[str]) -> list[str]:
    """Return both lists joined, of the newest KEPT_IDS ids; an id that is in both keeps its place in `left`."""
    known = set(left)
    return (left + [item for item in right if item not in known])[-KEPT_IDS:]


class Route(StrEnum):
    """The node that follows `select` or `tune`; and `ideate` itself, which begins anew after a host's answer."""

    IDEATE = "ideate"
    IDEATE_AGAIN = "ideate_again"
    TUNE = "tune"
    CERTIFY = "certify"


Stage: TypeAlias = Literal["write", "compile", "mend", "verify", "benchmark", "done"]
"""The next step of a branch."""


def outcome_of(state: Mapping[str, Any]) -> SearchOutcome:
    """Return the outcome in the state of a search that a stop rule has ended.

    Raises:
        KeyError, ValueError: the state holds no outcome.
    """
    return SearchOutcome(state["outcome"])


class SearchInput(TypedDict, total=False):
    """The input that starts a search, or extends a finished one."""

    max_rounds: int


class SearchOutput(TypedDict, total=False):
    """The output of a search; its measurements are in the archive."""

    outcome: str  # a SearchOutcome's value
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
    outcome: str  # a SearchOutcome's value; "" while the search goes on
    route: str  # a Route's value; "" once a round is planned
    certified: bool


class BranchState(TypedDict, total=False):
    """One branch: an idea, a variation, and the progress of its attempts."""

    round: int
    idea_id: str
    variation: int
    model: str
    attempt: int
    candidate_id: str
    stage: Stage
    finished: list[str]


class BranchOutput(TypedDict, total=False):
    """The one key that leaves a branch: another key shared with the search would collide with the siblings' at fan-in."""

    finished: list[str]
