"""Requests to the judge, one record each with its reply types, and their encoding as lines.

A message is one line of JSON. A request carries its operation as `"op"`, a reply the name of its type as `"reply"`.
`judge/process.py` asks, `judge/worker/__main__.py` answers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

from ridgeline.tools.judge.replies import (
    Beyond,
    Changed,
    Different,
    Done,
    Failed,
    Graded,
    Idled,
    Intact,
    LeftOut,
    Loaded,
    Looped,
    Missing,
    ModeReady,
    PaceAlone,
    Renewed,
    Same,
    Touched,
    Unasked,
)
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass

R = TypeVar("R", bound=Record)


class NotAReplyError(ValueError):
    """A line is no reply to the request that was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Record, Generic[R]):
    """One operation of the judge, with its arguments; `R` is what it answers: one of `replies`."""

    replies: ClassVar[tuple[type[Record], ...]] = (Done,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Request[Loaded]):
    """Load a problem: the first request, which runs the reference and makes the sets."""

    replies = (Loaded,)

    reference_source: str
    interface: Interface
    tolerance: PrecisionClass
    secret: str  # hexadecimal: what inputs and parameters are drawn from
    call_limit_s: float  # for one step of the reference
    device: DeviceKind
    cache_bytes: int
    memory_bytes: int
    fatal_attempts: tuple[str, ...] = ()  # what lost earlier judges of this problem the GPU
    graph_folder: str = ""  # of graphs that were exported before
    has_candidates: bool = True  # else PyTorch's own ways alone are timed, for which no trials are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Wipe(Request[Done]):
    """Overwrite all that earlier runners could write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redraw(Request[Done]):
    """Draw trials and timed sets from another secret from now on."""

    secret: str  # hexadecimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare(Request[Done]):
    """Put a trial's inputs and parameters in place and poison the set's outputs, with NaN or a large number."""

    trial: str
    set_index: int
    nan: bool
    is_examined: bool = True  # False: what a call makes of it is not compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison(Request[Done]):
    """Poison one set's outputs, with NaN or a large number."""

    set_index: int
    nan: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Examine(Request[Touched | Beyond | Missing | Graded]):
    """Grade a first run on a trial, and keep a copy of its outputs."""

    replies = (Touched, Beyond, Missing, Graded)

    trial: str
    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamineRepeat(Request[Beyond | Missing | Same | Different]):
    """Compare a second run on the same inputs with the first one's copy."""

    replies = (Beyond, Missing, Same, Different)

    trial: str
    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectChange(Request[Changed]):
    """Compare a set's outputs with the copy of those that were examined."""

    replies = (Changed,)

    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew(Request[Renewed]):
    """Give every set new inputs and poisoned outputs, and change parameters wholly or in one place."""

    replies = (Renewed,)

    order: tuple[int, ...] = ()  # in which the sets are written; empty: as they are numbered
    wanted: tuple[str, ...] = ()  # kinds of contents that the block has to have; empty: a secret share of sets has some
    calls: int = 0  # of the block, among whose sets the wanted kinds are


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRenewals(Request[PaceAlone]):
    """Take again, with no candidate there, the time to write contents."""

    replies = (PaceAlone,)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOut(Request[LeftOut]):
    """Leave out of timed sets, from now on, the kinds of contents that the reference refuses of what lies there now."""

    replies = (LeftOut,)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindUnasked(Request[Unasked]):
    """Look for an output among these sets that somebody wrote since the last renewal."""

    replies = (Unasked,)

    sets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyInputs(Request[Intact]):
    """Compare a set's inputs with what the last renewal wrote there."""

    replies = (Intact,)

    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawNext(Request[Done]):
    """Draw the parameters of the next `Supersede`: what takes time is done before a candidate works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersede(Request[Done]):
    """Change the parameters, and give a set the inputs of another, while a candidate works."""

    set_index: int
    like: int  # the set whose inputs it gets


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Request[Done]):
    """Copy a set's outputs out and back: the parent measures a collection by it."""

    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRoom(Request[Done]):
    """Give back all memory whose contents can be made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle(Request[Idled]):
    """Time next to nothing on the device."""

    replies = (Idled,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Request[Trial]):
    """Grade a set after a timed loop, against what its inputs of now give."""

    replies = (Trial,)

    set_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareMode(Request[ModeReady]):
    """Compile the reference in a mode where it must be, and call it once."""

    replies = (ModeReady,)

    mode: ReferenceMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(Request[Looped]):
    """Time a call of the reference on each of these sets, or a loop over them without its calls."""

    replies = (Looped,)

    mode: ReferenceMode
    sets: tuple[int, ...]
    is_empty: bool = False


REQUESTS: tuple[type[Request[Any]], ...] = (
    Load, Wipe, Redraw, Prepare, Poison, Examine, ExamineRepeat, DetectChange, Renew, TimeRenewals,
    LeaveOut, FindUnasked, VerifyInputs, DrawNext, Supersede, Copy, MakeRoom, Idle, Check, PrepareMode, Loop,
)  # fmt: skip


def operation(request: type[Request[Any]]) -> str:
    """Return the name of a request's operation on its line, which is also that of the judge's method: "prepare_mode"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", request.__name__).lower()


_BY_OPERATION = {operation(request): request for request in REQUESTS}


# ------------------------------------------------------------------------------------------------------------ the lines


def encode_request(request: Request[Any]) -> bytes:
    """Return the line that asks for an operation."""
    return _line({"op": operation(type(request)), **request.to_json()})


def decode_request(line: bytes | str) -> Request[Any]:
    """Return the request that a line of the parent makes."""
    data = json.loads(line)
    return _BY_OPERATION[data["op"]].from_json(data)


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
        raise NotAReplyError(f"not a reply to {operation(type(request))}") from error


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data, allow_nan=False).encode() + b"\n"
