"""The present work of a search that goes on, as its archive tells it: the round, open calls, kernels without a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.tools.records.keys import CallId
from ridgeline.tools.records.vocabulary import SEARCHED

_BEGUN = """SELECT (SELECT COUNT(*) FROM candidates) AS candidates,
(SELECT MAX(round) FROM (SELECT round FROM candidates UNION ALL SELECT round FROM ideas)) AS round"""
_UNJUDGED = """SELECT id FROM candidates
WHERE id NOT IN (SELECT candidate_id FROM evaluations UNION ALL SELECT candidate_id FROM engine_failures) ORDER BY rowid"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call without a reply."""

    what: str  # "ideas of round 2", "a kernel for r2i1", "a repair for r2i1"
    model: str
    since: str  # UTC, ISO 8601
    is_waiting: bool  # for an answer from outside, a batch included


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a search."""

    candidates: int
    round: int  # the newest one that has begun
    rounds: int | None  # that it was asked for
    is_certifying: bool  # its rounds are over
    unjudged: tuple[str, ...]  # kernels without a verdict
    calls: tuple[OpenCall, ...]


def progress(archive: Archive) -> Progress:
    """Return how far a search has come."""
    run = archive.run()
    rounds = run.max_rounds or (run.settings or {}).get("rounds")
    begun = archive.database.query(_BEGUN)[0]
    journal = Journal(archive)
    calls = [call for state in ("in_flight", "waiting") for call in journal.calls(state)]
    return Progress(
        candidates=begun["candidates"],
        round=max(begun["round"] or 0, *(_round_of(str(call.call_id)) for call in calls), 0),
        rounds=rounds if isinstance(rounds, int) else None,
        is_certifying=bool(run.stop_reason),
        unjudged=unjudged(archive),
        calls=tuple(
            OpenCall(
                what=_what(str(call.call_id)),
                model=str(call.model),
                since=str(call.began_at or ""),
                is_waiting=call.state == "waiting",
            )
            for call in calls
        ),
    )


def unjudged(archive: Archive) -> tuple[str, ...]:
    """Return the kernels without a verdict, oldest first."""
    return tuple(row["id"] for row in archive.database.query(_UNJUDGED))


def failed_kernels(archive: Archive) -> list[str]:
    """Return the kernels that a search has no verdict of because the machine failed, or was too busy; oldest first."""
    return [failure.candidate_id for failure in archive.engine_failures() if failure.purpose in SEARCHED]


def _round_of(text: str) -> int:
    call = CallId.read(text)
    return call.round if call else 0


def _what(text: str) -> str:
    call = CallId.read(text)
    if call is None:
        return text
    if call.asks_for_ideas:
        return f"ideas of round {call.round}"
    return f"{'a repair' if call.attempt else 'a kernel'} for {call.idea_id}"
