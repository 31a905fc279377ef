"""A search that began earlier: whether it may go on, and how far."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.history.progress import failed_kernels
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.certificate.validity import forget_winner, is_to_be_given_again
from ridgeline.graph.models.model_names import is_name
from ridgeline.graph.search.ideas.memory import unwritten_branches
from ridgeline.graph.search.ranking.elites import read_standings
from ridgeline.graph.search.rounds.stop_rules import first_stop
from ridgeline.graph.state import Route, SearchState, outcome_of
from ridgeline.tools.errors import ModelError, RunError
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.vocabulary import RunState, SearchOutcome
from ridgeline.tools.wording import counted, option

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.events import SearchEvent
    from ridgeline.tools.records.problem import Target


def source_sha256(target: Target) -> str:
    """Return the hash of the reference with its sizes."""
    return hashlib.sha256(target.reference_source.encode()).hexdigest()


def check_same(run_dir: Path, begun: RunRecord, target: Target) -> None:
    """Raise RunError when new measurements would not compare with the run's earlier ones."""
    problem = begun.problem or {}
    if begun.reference_source_sha256 != source_sha256(target):
        if problem.get("name") != target.name:
            raise RunError(
                f"{run_dir}: a search of {problem.get('name')}, not of {target.name}; resume it without naming a problem, "
                f"or give a run of {target.name}"
            )
        raise RunError(f"{run_dir}: the reference or its sizes changed since this search began; start anew")
    device, here = begun.device, target.device
    if device is None:
        raise RunError(f"{run_dir}: does not say on which device it began: its archive is damaged; start anew")
    if (device.kind, device.arch) != (here.kind, here.arch):
        raise RunError(f"{run_dir}: begun on {device.arch}, this device is {here.arch}; resume it there or start anew")
    for name in ("interface", "tolerance", "call_timeout_s"):
        was, now = problem.get(name), getattr(target, name)
        if was != now:
            raise RunError(f"{run_dir}: begun with {name} {was}, the problem now says {now}; set it back or start anew")


@contextlib.contextmanager
def naming_own_models(run_dir: Path, names: Iterable[str]) -> Iterator[None]:
    """Tell where a run is resumed of which the block cannot make a model, since a program gave it one of its own."""
    try:
        yield
    except ModelError:
        own = next((name for name in names if not is_name(name)), None)
        if own is None:
            raise
        raise ModelError(
            f"{run_dir}: begun by a program with a model of its own, {own!r}; resume it there: "
            f"run_search(SearchOptions(resume=True, run_dir={str(run_dir)!r}), models=[…]), or name another model: "
            f"{option('model', 'openai:o3')}"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """Continuation of a search that is over."""

    max_rounds: int | None = None  # None: no further round
    reason: str = ""  # the stop rule that allows no further round; empty when nobody asked for more
    certifies_again: bool = False  # its certificate is to be given again
    unjudged: int = 0  # kernels that the machine failed on: they are judged, and one that may win is certified

    @property
    def is_over(self) -> bool:
        """Say whether the search stays over."""
        return self.max_rounds is None and not self.certifies_again and not self.unjudged


async def extension(context: SearchContext, values: Mapping[str, Any], max_rounds: int | None) -> Extension:
    """Return how far a search that is over goes on, by the values of its last state.

    `max_rounds` extends every search, also a stalled one. Without it, a search that its budget ended goes on when the
    budget has room now. The branches that the spent budget left unwritten come first; they may lie in the last round.
    """
    is_certified = values.get("certified", False)
    over = Extension(
        certifies_again=await run_whole(is_to_be_given_again, context.archive, is_certified=is_certified),
        unjudged=0 if context.replays_times else len(await run_whole(failed_kernels, context.archive)),
    )
    if max_rounds is None and outcome_of(values) is not SearchOutcome.BUDGET:
        return over
    rounds = max_rounds or values.get("max_rounds") or context.settings.rounds
    round_ = values.get("round", 0) - (1 if await unwritten_branches(context.archive, values) else 0)
    standings = await run_whole(read_standings, context.archive)
    stop = await first_stop(
        context,
        context.plan(rounds),
        round_=round_,
        stalled_rounds=0 if max_rounds else values.get("stalled_rounds", 0),
        best=standings[0] if standings else None,
    )
    return replace(over, reason=stop.reason) if stop else Extension(max_rounds=rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """The way in which a session goes on with its search; `remark` is what its viewers are told of it."""

    stays: RunState | None = None  # how a search that stays over has ended
    given: dict[str, int] | None = None  # the graph's input; None leads on from where the graph was
    extension: Extension | None = None  # of a search that is over and goes on
    remark: SearchEvent | None = None


async def decide_continuation(
    snapshot: StateSnapshot, context: SearchContext, *, max_rounds: int | None
) -> Continuation:
    """Return how a session goes on from the graph's last state; nothing is changed."""
    if snapshot.created_at is None:
        return Continuation(given={"max_rounds": max_rounds} if max_rounds else {})
    if snapshot.tasks:  # not `next`, which leaves out a task that ended just before the search was cut
        return Continuation()  # any input would begin the graph anew
    if context.measuring.is_away:  # a certificate that is dropped here could not be given again
        away = "this search is over, and goes on only where its device is"
        return Continuation(stays=RunState(outcome_of(snapshot.values)), remark=_warning(away))
    more = await extension(context, snapshot.values, max_rounds)
    remark: SearchEvent | None = None
    if more.reason:
        remark = _warning(f"{_left(more)}: {more.reason}")
    elif more.is_over:
        rounds = (snapshot.values.get("max_rounds") or context.settings.rounds) + 1
        said = f"nothing was left to do: this search is over; {option('rounds', rounds)} extends it"
        remark = {"event": "note", "message": said}
    elif more.unjudged:
        remark = {"event": "note", "message": f"{_left(more)}: no round was asked for"}
    if more.is_over:
        return Continuation(stays=RunState(outcome_of(snapshot.values)), remark=remark)
    given = None if more.max_rounds is None else {"max_rounds": more.max_rounds}
    return Continuation(given=given, extension=more, remark=remark)


def _left(more: Extension) -> str:
    """Return in words what a search without further rounds still does."""
    if more.unjudged:
        certificate = "the certificate" if more.certifies_again else "a certificate where one may win"
        return f"only {counted(more.unjudged, 'kernel')} that the machine failed on, and {certificate}, left to do"
    return "nothing is left to do" if more.is_over else "only the certificate is left to do"


def _warning(message: str) -> SearchEvent:
    return {"event": "warning", "message": message}


async def prepare(graph: Any, thread: Any, archive: Archive, continuation: Continuation) -> dict[str, int] | None:
    """Make ready what the session goes on with, and return the graph's input.

    The graph of a search that was over is led to its certificate, before which it judges what the machine failed on; the
    winner is forgotten there, once one of these kernels may beat it. Those of further rounds may, which forget it at once.
    """
    from langgraph.types import Command

    more = continuation.extension
    if more is not None and more.max_rounds is None:
        update: SearchState = {"route": Route.CERTIFY.value}
        to_certify = Command(update=update, goto="certify")
        await graph.aupdate_state(thread, to_certify, as_node="select")
    elif more is not None:
        await run_whole(forget_winner, archive.path.parent, archive)
    return continuation.given
