"""Replies of the judge: one record for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.error_map import ErrorMap
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.module_contract import ModuleContract
from ridgeline.tools.records.problem import ArgSpec, Description, SkippedTrial
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.told_error import ToldError
from ridgeline.tools.records.vocabulary import PrecisionClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Record):
    """The operation ended; there is nothing to say of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Record):
    """The operation gave no result."""

    error: ToldError


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(Record):
    """Location of one tensor argument: `offset + set_index * set_stride` bytes into a region."""

    spec: ArgSpec
    region: int
    offset: int
    set_stride: int  # 0 for parameters and buffers, which all sets share


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionForm(Record):
    """The size of one region of shared memory, and whether a runner may write it."""

    size_bytes: int
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFacts(Record):
    """A problem that the judge has loaded, without its memory."""

    description: Description
    n_sets: int
    places: tuple[Place, ...]  # signature order, tensors only
    trials: tuple[str, ...]
    degenerate: Finding | None  # None when a kernel has work to do
    scalars: Mapping[str, tuple[float, ...]] = field(
        default_factory=dict
    )  # by trial that has other ones, as in the signature
    reference_module: ModuleContract | None = None  # how a runner makes and calls the reference; None where none can
    timed_kinds: tuple[str, ...] = ()  # of contents that every measurement of a candidate has to have
    shared_outputs: tuple[tuple[int, int], ...] = ()  # pairs, by number, that overlap in what the reference gives


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded(ProblemFacts):
    """A problem that the judge has loaded; the regions' descriptors travel beside this reply, in the same order."""

    regions: tuple[RegionForm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Element(Record):
    """One element of an output, with the value that it has and the one that it should have."""

    index: tuple[int, ...]
    got: float  # this and the next one are ints where an output holds integers, whose last digits count
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched(Record):
    """The candidate wrote to an input."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond(Record):
    """The candidate wrote behind an output's last byte."""

    output: str
    count: int  # bytes that it changed there
    first: int  # bytes between the output's end and the first of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing(Record):
    """Elements of an output still hold the poison: the candidate did not write them."""

    output: str
    count: int
    total: int  # elements of the output
    first: int  # flat index of the first missing element
    width: int  # elements in a row of the output


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded(Record):
    """Grade of one run: its outputs against the expected ones. The fields from `output` on explain a trial that failed."""

    trial: Trial
    measured: PrecisionClass | None  # the strictest class whose gates the outputs meet; None: they meet none
    output: str = ""  # the output that is furthest off
    stale: str = ""  # the earlier trial whose output this is, "" for none
    non_finite: Element | None = None  # an element whose NaN or infinity does not match
    worst: Element | None = None  # the element that is furthest off
    wrong_integers: int = 0  # integers and bools
    invalid_bools: int = 0  # of these, bytes that are neither 0 nor 1
    is_unrounded: bool = False  # the reference rounds nothing in that output
    is_like_rounding: bool = False  # its errors lie as rounding in the measured class spreads them
    lost_rows: int = 0  # far below the rest, and not there
    lost_share: float = 0.0  # the largest one's root mean square over the whole output's
    error_map: ErrorMap | None = None  # None: too large to map, or no single element is beyond an element's limit

    def __post_init__(self) -> None:
        if self.trial.passed and self.measured is None:
            raise ValueError(f"{self.trial.name}: a trial that passed needs a class")


@dataclass(frozen=True, slots=True, kw_only=True)
class Same(Record):
    """The second run gave the same bits as the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Different(Record):
    """The second run gave other outputs than the first."""

    difference: float  # relative error of the second run over the first
    graded: Graded  # the second run's


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Record):
    """Comparison of a set's outputs with those that were examined: `changed` when any bit differs."""

    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed(Record):
    """Slowdown of new contents: their time / their time before any candidate was there; 0 on a CPU.

    `trial_sets` are the sets whose contents are those of a trial and not nominal: their outputs tell most. `kinds` are their
    contents' names, in the same order, and `parameter_kind` is that of the parameters, "" for ordinary ones.
    """

    slowdown: float
    trial_sets: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    parameter_kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceAlone(Record):
    """Slowdown of new contents with no candidate there: their time / the usual one until now; 1 on a CPU."""

    slowdown: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(Record):
    """The kinds of contents that timed sets no longer have, since the reference refused them just now; and those they have."""

    left_out: tuple[SkippedTrial, ...]
    timed_kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked(Record):
    """Sets among those looked at whose outputs somebody wrote."""

    written: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intact(Record):
    """State of a set's inputs: `intact` when the set still holds those that it was given."""

    intact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Idled(Record):
    """Time that the device took for next to nothing."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeReady(Record):
    """Exactness of a mode of the reference: the error of its first call, and the class that fits it."""

    rel_error: float
    measured: PrecisionClass | None  # None: it fits no class


@dataclass(frozen=True, slots=True, kw_only=True)
class Looped(Record):
    """Duration of a loop of the reference, by the judge's own clock or the GPU's."""

    own_s: float
