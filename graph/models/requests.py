"""Requests to a model and its replies; the offline model takes the same requests as a language model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from pydantic.json_schema import SkipJsonSchema

from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Description, Device, DeviceFact
from ridgeline.tools.records.search import BuildingBlock
from ridgeline.tools.records.vocabulary import Category, IdeaOutcome, Interface, PrecisionClass, ReasonCode


class Stated(Protocol):
    """Anything with an idea's words, whatever its number."""

    @property
    def title(self) -> str:
        """Return the idea in a line."""
        ...

    @property
    def mechanism(self) -> str:
        """Return what changes and why it helps."""
        ...


class IdeaDraft(BaseModel):
    """One optimization idea as a model states it."""

    model_config = ConfigDict(extra="ignore")

    title: str = Field(min_length=3, max_length=160)
    mechanism: str = Field(min_length=10, description="what changes in the kernel and why the hardware rewards it")
    category: Category
    predicted_gain: float = Field(
        default=1.1, ge=0.1, le=1000, description="expected speedup over the parent kernel, between 0.1 and 1000"
    )
    parent_id: str | None = Field(default=None, description="id of the elite kernel this idea starts from")
    second_parent_id: str | None = Field(default=None, description="id of a second elite, when recombining two")
    plans: tuple[str, ...] = Field(default=(), description="how each implementation realises the idea, one entry each")
    block: str | None = Field(default=None, description="name of a building block that this idea takes its means from")
    stage: str | None = Field(default=None, description="name of the parent's stage that this idea makes faster")
    composition: SkipJsonSchema[tuple[str, ...] | None] = None  # the offline model's alone: the names of all structures

    @field_validator("plans", mode="before")
    @classmethod
    def _as_plans(cls, given: object) -> object:
        """Return plans as a list: no plan must not cost the idea."""
        return [given] if isinstance(given, str) else [] if given is None else given


class IdeaList(BaseModel):
    """The ideas of one reply."""

    ideas: list[IdeaDraft]


def _encodable(text: str) -> str:
    """Return a text that UTF-8 can hold, as every file of a kernel has to be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a pair of unicode surrogates stands alone") from None
    return text


Code = Annotated[str, AfterValidator(_encodable)]


class KernelEdit(BaseModel):
    """One change of a source that the request shows."""

    search: Code = Field(description="whole lines of that source, as they stand at one place alone")
    replace: Code = Field(description="the lines that stand there instead; empty: they go")


class KernelDraft(BaseModel):
    """One whole kernel source, or edits of a source that the request shows."""

    source: Code = Field(default="", description="the complete source file; empty when edits are given")
    edits: tuple[KernelEdit, ...] = Field(
        default=(), description="in the place of the source: edits of the source that failed, or of the parent's"
    )
    notes: str = Field(default="", description="one or two sentences on what was done")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedIdea(Record):
    """An idea of an earlier round and its result; where the list is long, older ones lack all but the result."""

    id: str
    round: int = 0
    title: str
    mechanism: str
    category: Category
    parent_id: str | None
    best_candidate_id: str | None
    best_speedup: float | None  # eager / best implementation; None when every implementation failed
    failure: str = ""  # why every implementation failed
    composition: tuple[str, ...] | None = None  # of an idea of the offline model, the names of all structures
    predicted_gain: float = 1.0
    gain: float | None = None  # parent / best implementation; None without a parent
    ends: tuple[str, ...] = ()  # of its implementations, a line each
    before: str = ""  # the parent's diagnosis
    after: str = ""  # that of the best implementation
    sweep: tuple[str, ...] = ()  # of the best kernel's tunable values with their times, a line each
    outcome: IdeaOutcome | None = None  # None: no implementation was judged
    tries_left: int = 0  # times that an idea whose implementations failed may be proposed again


@dataclass(frozen=True, slots=True, kw_only=True)
class Elite(Record):
    """A kernel worth starting from."""

    candidate_id: str
    idea_title: str
    source: str
    median_ms: float
    speedup: float
    steady_ms: float | None = None  # eager's own time / `speedup`: comparable where the machine's speed drifts
    speedup_ci95: tuple[float, float] | None = None
    was_busy: bool = False  # other programs used the machine during its timing
    diagnosis: str = ""
    largest_stage: str = ""  # of the profile that `diagnosis` tells; it decides what of the source is shown
    idea_id: str | None = None  # None: a seed, or a kernel of the bank
    parent_id: str | None = None  # the kernel that its idea started from
    tuned_from: str = ""  # the written kernel of which it is a point of the sweep

    @property
    def written_id(self) -> str:
        """Return the id of the kernel as it was written, its own or that of the one it was tuned from."""
        return self.tuned_from or self.candidate_id

    sweep: tuple[str, ...] = ()  # of this kernel's tunable values, or of those of the kernel it was tuned from

    def to_json(self) -> dict[str, Any]:
        """Return the kernel as the journal stores it; its largest stage is stored with its profile alone."""
        data = super(Elite, self).to_json()
        del data["largest_stage"]
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Record):
    """The problem as every request states it: what is known of it before anything is timed."""

    problem_name: str
    reference_source: str
    header: str  # what a source has to define, as the generated problem.h declares it
    interface: Interface
    language: str  # "cpp", "cu" or "py"
    tolerance: PrecisionClass
    device: Device
    description: Description
    facts: tuple[DeviceFact, ...] = ()  # the device's table


@dataclass(frozen=True, slots=True, kw_only=True)
class IdeationRequest(Record):
    """Ask for `count` new ideas, given everything tried so far."""

    subject: Subject
    baselines: Baselines  # with the floor
    round: int
    count: int
    rng_seed: int
    implementations: int = 1  # of each idea: as many plans are asked for
    tried: tuple[TriedIdea, ...] = ()
    elites: tuple[Elite, ...] = ()
    user_ideas: tuple[str, ...] = ()
    blocks: tuple[BuildingBlock, ...] = ()
    recombine: tuple[str, str] | None = None  # the elites that one of the ideas is to recombine
    planned: tuple[str, ...] = ()  # ideas of this round that are taken already, other models' among them
    refused: tuple[str, ...] = ()  # titles just refused as duplicates of tried ones
    unreadable: str = ""  # why the last reply to this request could not be used
    partial: str = ""  # what a reply held when its limit of tokens cut it off: the rest is wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRequest(Record):
    """Ask for one whole kernel that implements an idea, or for its repair."""

    subject: Subject
    baselines: Baselines  # with the floor
    idea: IdeaDraft
    variation: int  # implementations of one idea differ: 0, 1, …
    rng_seed: int
    plan: str = ""  # of this implementation, as the idea states it
    parent: Elite | None = None
    second_parent: Elite | None = None
    block: BuildingBlock | None = None  # the one that the idea takes its means from
    failed_source: str = ""  # set for a repair
    failure: str = ""  # interpreted error of the failed source
    failure_code: ReasonCode = ReasonCode.NONE  # the same for a decision; NONE also where the source was not judged
    earlier: tuple[str, ...] = ()  # how the branch's attempts before the failed one ended, a line each
    unreadable: str = ""  # why the last reply to this request could not be used
    partial: str = ""  # what a reply held when its limit of tokens cut it off: the rest is wanted

    @property
    def is_repair(self) -> bool:
        """Say whether `failed_source` is a kernel that was judged; else it is a reply that could not be read."""
        return bool(self.failed_source) and self.failure_code is not ReasonCode.NONE

    @property
    def bases(self) -> tuple[str, ...]:
        """Return the sources that edits may be of: the one that failed, the parent's."""
        return tuple(source for source in (self.failed_source, self.parent.source if self.parent else "") if source)


def own_part(request: IdeationRequest | KernelRequest) -> dict[str, Any]:
    """Return a request's JSON without the problem, PyTorch's times and building blocks, which calls of a round share."""
    data = request.to_json()
    if isinstance(request, KernelRequest):
        data["idea"] = request.idea.model_dump(mode="json")
    return {key: value for key, value in data.items() if key not in ("subject", "baselines", "blocks")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(Record):
    """The consumption of one call."""

    input_tokens: int = 0
    output_tokens: int = 0  # thought included
    usd: float | None = 0.0  # None: the price is unknown
    latency_s: float = 0.0
    cached_tokens: int = 0  # of the input, read from the provider's cache
    reasoning_tokens: int = 0  # of the output, thought that is paid and not shown

    @property
    def tokens(self) -> int:
        """Return input and output together, as a budget counts them."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Record):
    """A model's answer before it is parsed, as the journal stores it."""

    text: str  # JSON of an IdeaList or a KernelDraft
    usage: Usage = field(default_factory=Usage)
    raw: dict[str, Any] = field(default_factory=dict)
    is_truncated: bool = False  # its limit of tokens cut it off


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The ways in which models differ, as far as a search decides by them."""

    # kernels are composed of structures that it knows: it covers some problems, and ranks itself which pairs to join
    composes: bool = False
    reads_prompts: bool = True  # … with the kernels, profiles, building blocks and device facts in them
    thinks: bool = True  # so that the device is idle meanwhile
    # room in the budget is reserved for its calls; those of others use no tokens, or their answers state them
    is_metered: bool = True


COMPOSER = Traits(composes=True, reads_prompts=False, thinks=False, is_metered=False)
"""The offline model's: it reads the reference's graph and answers in milliseconds."""


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
