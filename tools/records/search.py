"""The ideas and candidates of a search."""

from __future__ import annotations

from dataclasses import dataclass, field

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.vocabulary import (
    Category,
    Interface,
    Origin,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea(Record):
    """One optimization idea in plain language."""

    id: str  # "r2i3": round 2, idea 3
    round: int
    title: str
    mechanism: str
    category: Category
    predicted_gain: float  # its model's expected speedup over the parent, over eager where there is none: 1.3
    parent_id: str | None  # a candidate's id
    second_parent_id: str | None = None  # set when the idea recombines two kernels
    model: str = ""  # "openai:o3", "offline", "user"
    composition: tuple[str, ...] | None = None  # of an idea of the offline model, the names of all structures


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Record):
    """One native source that claims to do the reference's work."""

    id: str  # "r2i3v0a1": round, idea, variation, attempt; "seed-naive", "bank-1f3c…", "r2i3v0a1t7"
    origin: Origin
    round: int
    idea_id: str | None
    parent_id: str | None
    variation: int = 0
    attempt: int = 0
    source: str
    language: str  # "cpp", "cu" or "py"
    interface: Interface = Interface.C
    model: str = ""
    tunables: dict[str, str] = field(default_factory=dict)  # values chosen by tune
