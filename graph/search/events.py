"""The events of a running search for its viewers: small dicts on LangGraph's custom stream."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NotRequired, TypedDict, TypeGuard, get_args, get_origin, get_type_hints

from ridgeline.tools.records.vocabulary import SearchOutcome


class BaselineEvent(TypedDict):
    """Eager PyTorch and the floor are measured; told once more when the compiled configurations are too."""

    event: Literal["baseline"]
    baselines_ms: dict[str, float | None]
    stored: dict[str, str]  # of those kept from earlier: when each was measured, "" where that is not known
    floor_ms: float  # of memory
    compute_floor_ms: float
    bound: str
    headroom: float | None  # best baseline / floor


class TimingPyTorch(TypedDict):
    """The search waits for PyTorch's compiled configurations; told before each."""

    event: Literal["timing_pytorch"]
    pending: list[str]  # the first is being timed


class SeedsEvent(TypedDict):
    """Kernels that exist already are judged: those of the problem and of the bank, or a user's own; not told without any."""

    event: Literal["seeds"]
    kernels: int
    banked: int  # of these, those of the seed bank


class IdeationEvent(TypedDict):
    """Models are asked for the ideas of a round."""

    event: Literal["ideation"]
    round: int
    max_rounds: int  # as in `round_started`


class RoundStarted(TypedDict):
    """A round's ideas are chosen and its branches start."""

    event: Literal["round_started"]
    round: int
    max_rounds: int  # 0: as many as the limit of tokens allows
    ideas: int
    branches: int


class IdeaEvent(TypedDict):
    """One idea enters the search."""

    event: Literal["idea"]
    round: int
    idea_id: str
    title: str
    category: str
    model: str


class BranchStage(TypedDict):
    """A branch enters a step."""

    event: Literal["branch_stage"]
    branch: str  # "r1i0v0"
    idea_id: str
    candidate_id: str
    stage: str  # write, compile, mend, verify, benchmark
    attempt: int
    model: str


class CandidateDone(TypedDict):
    """A candidate is judged."""

    event: Literal["candidate_done"]
    candidate_id: str
    idea_id: str | None
    branch: str  # "" outside of branches
    origin: str
    status: str
    reason: str
    median_ms: float | None
    reference_ms: float | None  # eager's, in the same run
    speedup: float | None
    speedup_ci95: list[float] | None
    same_source_as: NotRequired[str]  # the earlier kernel that it repeats; "" of a new one


class RoundDone(TypedDict):
    """A round is over, its tuning too."""

    event: Literal["round_done"]
    round: int
    max_rounds: int
    best_id: str | None
    best_speedup: float | None
    best_speedup_ci95: list[float] | None
    best_median_ms: float | None
    elites: list[str]
    tokens: int
    usd: float
    unpriced_calls: int  # of unknown price: their cost counts as nothing


class TuneEvent(TypedDict):
    """One point of the tuning sweep is measured."""

    event: Literal["tune"]
    candidate_id: str
    values: dict[str, str]
    trial: int
    trials: int
    speedup: float | None


class ComparingEvent(TypedDict):
    """Two kernels that the search could not tell apart are timed in turns."""

    event: Literal["comparing"]
    candidate_ids: list[str]  # the fastest by the search's own timings, then the one beside it
    place: tuple[int, int]  # the comparison's number, and of how many


class NotComparedEvent(TypedDict):
    """Two kernels were not timed in turns after all."""

    event: Literal["not_compared"]
    candidate_ids: list[str]
    failed: str | None  # the one of the two that failed there, which has lost; None where nothing is said of either


class CertificationEvent(TypedDict):
    """The rounds are over, and what proves the winner begins: told before its steps, which are told one by one."""

    event: Literal["certification"]
    phase: str  # what is done before the first step
    left_s: float  # about, for all of it


class CertifyEvent(TypedDict):
    """A step of the certificate."""

    event: Literal["certify"]
    candidate_id: str
    step: str
    passed: bool | None  # None while it runs, and of one that is not done or skipped, whose detail says why
    detail: NotRequired[str]
    skipped: NotRequired[bool]  # this machine lacks what it needs
    place: NotRequired[tuple[int, int]]  # of a step that begins: its number, and of how many
    left_s: NotRequired[float]  # of a step that begins: about, for it and those after it


class StoppedEvent(TypedDict):
    """The rounds are over, what proves the winner follows; told once more where no certified kernel beats PyTorch."""

    event: Literal["stopped"]
    outcome: SearchOutcome | Literal["stopping"]  # "stopping": it was asked to stop, and ends after the steps in flight
    reason: str


class WaitingEvent(TypedDict):
    """The search waits for a device that another process has, or waits no longer."""

    event: Literal["waiting"]
    device: str  # "" where the wait was given up
    holder: str  # "" once nobody is waited for
    holders: int  # how many processes hold the device
    # worth a line in a log: no line named this holder within the last minute, nor another just now; or the device is free
    is_news: bool


class MailboxEvent(TypedDict):
    """Requests of the search wait for answers from outside, or none does any longer."""

    event: Literal["mailbox"]
    waiting: list[str]  # their ids
    folder: str


class BatchEvent(TypedDict):
    """Requests of the search wait in batches of their providers, or none does any longer."""

    event: Literal["batch"]
    waiting: list[str]  # their ids


class WarningEvent(TypedDict):
    """A fault that the search survives and a reader should know of."""

    event: Literal["warning"]
    message: str


class NoteEvent(TypedDict):
    """A note on what a reader may wonder about, and is as it should be."""

    event: Literal["note"]
    message: str


SearchEvent = (
    BaselineEvent
    | TimingPyTorch
    | SeedsEvent
    | IdeationEvent
    | RoundStarted
    | IdeaEvent
    | BranchStage
    | CandidateDone
    | RoundDone
    | TuneEvent
    | ComparingEvent
    | NotComparedEvent
    | CertificationEvent
    | CertifyEvent
    | StoppedEvent
    | WaitingEvent
    | MailboxEvent
    | BatchEvent
    | WarningEvent
    | NoteEvent
)

_NEEDED = {
    get_args(hints["event"])[0]: {key for key, hint in hints.items() if get_origin(hint) is not NotRequired}
    for hints in (get_type_hints(kind, include_extras=True) for kind in get_args(SearchEvent))
}
"""The keys that each event has always. `__required_keys__` counts the others too where annotations are text, as here."""


def is_event(written: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether what lies on a graph's stream, which other nodes write to as well, is an event of a search, and whole."""
    if not isinstance(written, Mapping) or not isinstance(name := written.get("event"), str):
        return False
    return name in _NEEDED and written.keys() >= _NEEDED[name]


OnEvent = Callable[[SearchEvent], None]
"""Takes each event of a search."""


def ignore(event: SearchEvent) -> None:
    """Take an event that no viewer waits for."""


def viewer_of(on_event: OnEvent | None) -> OnEvent:
    """Return what takes the events of a caller's search: their own function, else `ignore`."""
    return ignore if on_event is None else on_event


_VIEWER: ContextVar[Callable[[SearchEvent], object] | None] = ContextVar("_VIEWER", default=None)


@contextmanager
def telling(viewer: Callable[[SearchEvent], object]) -> Iterator[None]:
    """Send the events of what begins within this block to `viewer`, in the place of their graph's stream."""
    token = _VIEWER.set(viewer)
    try:
        yield
    finally:
        _VIEWER.reset(token)


def from_here(write: Callable[[Any], object]) -> Callable[[Any], None]:
    """Return what writes in the context of this call, from any thread: a graph's writer looks for its graph around it."""
    here = contextvars.copy_context()

    def written(event: Any) -> None:
        here.copy().run(write, event)  # several threads tell at once, and a context is entered once

    return written


def emit(event: SearchEvent) -> None:
    """Send an event on the running graph's custom stream, or to the viewer that takes its place."""
    from langgraph.config import get_stream_writer

    (_VIEWER.get() or get_stream_writer())(event)


def note(message: str) -> None:
    """Tell of what a reader may wonder about, and is as it should be."""
    emit({"event": "note", "message": message})


def warn(message: str) -> None:
    """Tell of a fault that the search survives and a reader should know of."""
    emit({"event": "warning", "message": message})
