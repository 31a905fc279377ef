"""What the judge is asked and what it answers: one record for each request and for each reply, shared by both ends.

A message is one line of JSON. A request carries its operation as `"op"`, a reply the name of its type as `"reply"`.
`judge/process.py` asks, `judge/worker/__main__.py` answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar, cast

from ridgeline.tools.errors import (
    DeviceError,
    DeviceLostError,
    EngineError,
    JudgeCrashed,
    NoRoomError,
    ProblemError,
    RidgelineError,
)
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.problem import ArgSpec, Description
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass

R = TypeVar("R", bound=Record)


class NotAReplyError(ValueError):
    """A line is no reply to the request that was made."""


class FailureCode(StrEnum):
    """Why an operation gave no result: which exception the parent raises for it."""

    NO_ROOM = "no_room"
    PROBLEM = "problem"
    DEVICE = "device"
    DEVICE_LOST = "device_lost"
    JUDGE_LOST = "judge_lost"
    ENGINE = "engine"


_RAISED: dict[FailureCode, type[RidgelineError]] = {  # a subclass before its base
    FailureCode.NO_ROOM: NoRoomError,
    FailureCode.PROBLEM: ProblemError,
    FailureCode.DEVICE: DeviceError,
    FailureCode.DEVICE_LOST: DeviceLostError,
    FailureCode.JUDGE_LOST: JudgeCrashed,
    FailureCode.ENGINE: EngineError,
}


# ------------------------------------------------------------------------------------------------------------- replies


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Record):
    """The operation ended; there is nothing to say of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Record):
    """The operation gave no result."""

    code: FailureCode
    message: str

    @classmethod
    def of(cls, error: RidgelineError) -> Failed:
        """Return the reply for an error of the judge's own."""
        code = next((c for c, kind in _RAISED.items() if isinstance(error, kind)), FailureCode.ENGINE)
        return cls(code=code, message=str(error))

    def error(self) -> RidgelineError:
        """Return the exception that the parent raises."""
        return _RAISED[self.code](self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(Record):
    """Where one tensor argument lies: at `offset + set_index * set_stride` bytes of a region."""

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
class Loaded(Record):
    """A problem that the judge has loaded; the regions' descriptors travel beside this reply, in the same order."""

    description: Description
    n_sets: int
    regions: tuple[RegionForm, ...]
    places: tuple[Place, ...]  # signature order, tensors only
    trials: tuple[str, ...]
    degenerate: Finding | None  # None when a kernel has work to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Element(Record):
    """One element of an output, with the value that it has and the one that it should have."""

    index: tuple[int, ...]
    got: float
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched(Record):
    """The candidate wrote to an input."""

    name: str


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
    """How the outputs of one run compare with the expected ones. The last five fields explain a trial that failed."""

    trial: Trial
    measured: PrecisionClass | None  # the strictest class whose gates the outputs meet; None: they meet none
    worst_row: float  # the largest error of one row
    output: str = ""  # the output that is furthest off
    stale: str = ""  # the earlier trial whose output this is, "" for none
    non_finite: Element | None = None  # an element whose NaN or infinity does not match
    worst: Element | None = None  # the element that is furthest off
    wrong_integers: int = 0

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
    """Whether a set's outputs differ from those that were examined, in any bit."""

    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed(Record):
    """How long new contents took, over what they took before any candidate was there; 0 on a CPU."""

    slowdown: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Intact(Record):
    """Whether a set still holds the inputs that it was given."""

    intact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Idled(Record):
    """How long the device took for next to nothing."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeReady(Record):
    """How exact a mode of the reference is: the error of its first call, and the class that fits it."""

    rel_error: float
    measured: PrecisionClass | None  # None: it fits no class


@dataclass(frozen=True, slots=True, kw_only=True)
class Looped(Record):
    """How long a loop of the reference took by the judge's own clock or the GPU's."""

    own_s: float


# ------------------------------------------------------------------------------------------------------------ requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Record, Generic[R]):
    """One operation of the judge, with its arguments; `R` is what it answers: one of `replies`."""

    op: ClassVar[str]
    replies: ClassVar[tuple[type[Record], ...]] = (Done,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Request[Loaded]):
    """Load a problem: the first request, which runs the reference and makes the sets."""

    op = "load"
    replies = (Loaded,)

    reference_source: str
    interface: Interface
    tolerance: PrecisionClass
    secret: str  # hexadecimal: what inputs and parameters are drawn from
    call_limit_s: float  # for one step of the reference
    device: DeviceKind
    cache_bytes: int
    memory_bytes: int
    left_out: tuple[str, ...] = ()  # what lost earlier judges of this problem the GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Wipe(Request[Done]):
    """Overwrite all that earlier runners could write."""

    op = "wipe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare(Request[Done]):
    """Put a trial's inputs and parameters in place and poison the set's outputs, with NaN or a large number."""

    op = "prepare"

    trial: str
    set_index: int
    nan: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison(Request[Done]):
    """Poison one set's outputs, with NaN or a large number."""

    op = "poison"

    set_index: int
    nan: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Examine(Request[Touched | Missing | Graded]):
    """Grade a first run on a trial, and keep a copy of its outputs."""

    op = "examine"
    replies = (Touched, Missing, Graded)

    trial: str
    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamineRepeat(Request[Missing | Same | Different]):
    """Compare a second run on the same inputs with the first one's copy."""

    op = "repeated"
    replies = (Missing, Same, Different)

    trial: str
    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectChange(Request[Changed]):
    """Compare a set's outputs with the copy of those that were examined."""

    op = "changed"
    replies = (Changed,)

    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew(Request[Renewed]):
    """Give every set new inputs and poisoned outputs, and new parameters to all."""

    op = "renew"
    replies = (Renewed,)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyInputs(Request[Intact]):
    """Compare a set's inputs with what the last renewal wrote there."""

    op = "intact"
    replies = (Intact,)

    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Request[Done]):
    """Copy a set's outputs out and back: the parent measures a collection by it."""

    op = "copy"

    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle(Request[Idled]):
    """Time next to nothing on the device."""

    op = "idle"
    replies = (Idled,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Request[Trial]):
    """Grade a set after a timed loop, against what its inputs of now give."""

    op = "check"
    replies = (Trial,)

    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareMode(Request[ModeReady]):
    """Compile the reference in a mode where it must be, and call it once."""

    op = "prepare_mode"
    replies = (ModeReady,)

    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(Request[Looped]):
    """Time the reference over rotating sets."""

    op = "loop"
    replies = (Looped,)

    mode: str
    first_set: int
    calls: int


REQUESTS: tuple[type[Request[Any]], ...] = (
    Load, Wipe, Prepare, Poison, Examine, ExamineRepeat, DetectChange, Renew, VerifyInputs, Copy, Idle, Check,
    PrepareMode, Loop,
)  # fmt: skip
_BY_OP = {request.op: request for request in REQUESTS}


# ------------------------------------------------------------------------------------------------------------ the lines


def encode_request(request: Request[Any]) -> bytes:
    """Return the line that asks for an operation."""
    return _line({"op": request.op, **request.to_json()})


def decode_request(line: bytes | str) -> Request[Any]:
    """Return the request that a line of the parent makes."""
    data = json.loads(line)
    return _BY_OP[data["op"]].from_json(data)


def encode_reply(reply: Record) -> bytes:
    """Return the line that answers a request."""
    return _line({"reply": type(reply).__name__, **reply.to_json()})


def decode_reply(line: bytes, request: Request[R]) -> R | Failed:
    """Return what a line answers to a request.

    Raises:
        NotAReplyError: the line is no such answer.
    """
    kinds: tuple[type[Record], ...] = (*request.replies, Failed)
    try:
        data = json.loads(line)
        kind = next(k for k in kinds if k.__name__ == data["reply"])
        return cast("R | Failed", kind.from_json(data))
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration) as error:
        raise NotAReplyError(f"not a reply to {request.op}") from error


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data, allow_nan=False).encode() + b"\n"
