"""The ideas and candidates of a search."""

from __future__ import annotations

from dataclasses import dataclass, field

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.vocabulary import Category, Interface, Mender, Origin


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
    plans: tuple[str, ...] = ()  # how each implementation realises it, as its model states it
    block: str | None = None  # the name of a building block that it takes its means from
    stage: str | None = None  # that of its parent which it makes faster, as its model states it


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending(Record):
    """The way in which a model's kernel that did not build became another candidate without a call."""

    by: Mender
    failed_id: str  # the candidate that did not build
    changes: tuple[str, ...]  # in words, a line each
    sibling_id: str | None = None  # the repaired candidate of another branch, whose edit this is


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Record):
    """One native source that claims to do the reference's work."""

    id: str  # "r2i3v0a1": round, idea, variation, attempt; "r2i3v0a1f1", "r2i3v0a1t7", "seed-naive", "bank-1f3c…"
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
    mending: Mending | None = None  # None: its maker wrote it as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildingBlock(Record):
    """A kernel of another operator, shown for what can be taken from it; it is not judged."""

    name: str
    words: str  # what it is and how fast: "the fastest matmul known on this device, 88 % of its arithmetic peak"
    language: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWork(Record):
    """The work of a kernel of the bank, and how near the kernel comes to its device's peak."""

    arguments: str = ""  # "a float16 (4096, 4096), b float16 (4096, 4096) -> out float16 (4096, 4096)"
    bound: str = ""  # "memory" or "compute"
    share: float | None = None  # of the device's peak for what bounds it, 0 to 1; None: unknown
