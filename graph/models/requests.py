"""Requests to a model and its replies; the keyless model takes the same requests as a language model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Description, Device
from ridgeline.tools.records.results import Baselines
from ridgeline.tools.records.vocabulary import Category, Interface, PrecisionClass, ReasonCode


class IdeaDraft(BaseModel):
    """One optimization idea as a model states it."""

    model_config = ConfigDict(extra="ignore")

    title: str = Field(min_length=3, max_length=160)
    mechanism: str = Field(min_length=10, description="what changes in the kernel and why the hardware rewards it")
    category: Category
    predicted_gain: float = Field(default=1.1, ge=0.1, le=1000, description="expected speedup over the parent kernel")
    parent_id: str | None = Field(default=None, description="id of the elite kernel this idea starts from")
    second_parent_id: str | None = Field(default=None, description="id of a second elite, when recombining two")
    composition: SkipJsonSchema[tuple[str, ...] | None] = None  # the offline model's alone: the names of all structures


class IdeaList(BaseModel):
    """The ideas of one reply."""

    ideas: list[IdeaDraft]


class KernelDraft(BaseModel):
    """One whole kernel source."""

    source: str = Field(min_length=1, description="the complete source file")
    notes: str = Field(default="", description="one or two sentences on what was done")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedIdea(Record):
    """An idea of an earlier round and its result."""

    id: str
    title: str
    mechanism: str
    category: Category
    parent_id: str | None
    best_candidate_id: str | None
    best_speedup: float | None  # eager / best implementation; None when every implementation failed
    failure: str = ""  # why every implementation failed
    composition: tuple[str, ...] | None = None  # of an idea of the offline model, the names of all structures


@dataclass(frozen=True, slots=True, kw_only=True)
class Elite(Record):
    """A kernel worth starting from."""

    candidate_id: str
    idea_title: str
    source: str
    median_ms: float
    speedup: float
    diagnosis: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Record):
    """The problem as every request states it: what is known of it before anything is timed."""

    problem_name: str
    reference_source: str
    header: str  # the generated problem.h
    interface: Interface
    language: str  # "cpp", "cu" or "py"
    tolerance: PrecisionClass
    device: Device
    description: Description


@dataclass(frozen=True, slots=True, kw_only=True)
class IdeationRequest(Record):
    """Ask for `count` new ideas, given everything tried so far."""

    subject: Subject
    baselines: Baselines  # with the floor
    round: int
    count: int
    rng_seed: int
    tried: tuple[TriedIdea, ...] = ()
    elites: tuple[Elite, ...] = ()
    user_ideas: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()  # titles just refused as duplicates of tried ones
    unreadable: str = ""  # why the last reply to this request could not be parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRequest(Record):
    """Ask for one whole kernel that implements an idea, or for its repair."""

    subject: Subject
    baselines: Baselines  # with the floor
    idea: IdeaDraft
    variation: int  # implementations of one idea differ: 0, 1, …
    rng_seed: int
    parent: Elite | None = None
    second_parent: Elite | None = None
    failed_source: str = ""  # set for a repair
    failure: str = ""  # interpreted error of the failed source
    failure_code: ReasonCode = ReasonCode.NONE  # the same for a decision; NONE also where the source was not judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(Record):
    """The consumption of one call."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Record):
    """A model's answer before it is parsed, as the journal stores it."""

    text: str  # JSON of an IdeaList or a KernelDraft
    usage: Usage = field(default_factory=Usage)
    raw: dict[str, Any] = field(default_factory=dict)


class KernelModel(Protocol):
    """A model that proposes ideas and writes kernels.

    It answers with JSON text of the schema that the request implies. The journal stores that text before anything parses
    it, so that the replay of a search never depends on a parser.
    """

    @property
    def name(self) -> str:
        """Return "provider:model", as the user wrote it."""
        ...

    async def propose(self, request: IdeationRequest) -> Reply:
        """Answer with JSON of an IdeaList of at most `request.count` ideas."""
        ...

    async def write(self, request: KernelRequest) -> Reply:
        """Answer with JSON of a KernelDraft."""
        ...
