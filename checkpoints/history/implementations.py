"""The implementations of an idea: how each ended, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.lineage import finding
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Status
from ridgeline.tools.wording import counted

REASON_SHOWN = 200
"""Characters of a reason: what failed and where; a compiler's messages go to the repair alone."""


def ends_of(archive: Archive, candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Return how each implementation ended, by its last attempt that was judged: end, code, speedup, repairs."""
    written = [candidate for candidate in candidates if candidate.origin is Origin.MODEL]
    variations = sorted({candidate.variation for candidate in written})
    by_variation = [[c for c in written if c.variation == variation] for variation in variations]
    return tuple(_end(archive, attempts) for attempts in by_variation)


def _end(archive: Archive, attempts: Sequence[Candidate]) -> str:
    found = [(c, evaluation) for c in attempts if (evaluation := finding(archive, c.id))]
    if not found:
        return f"{attempts[-1].id}: not judged"
    right = [each for each in found if each[1].status is Status.OK]
    last, end = (right or found)[-1]
    after = f" after {counted(last.attempt, 'repair')}" if last.attempt else ""
    return f"{last.id}: {_words(end, after)}"


def end_of(archive: Archive, candidate_id: str) -> str:
    """Return how one candidate ended, in a line; "" before it is judged."""
    found = finding(archive, candidate_id)
    return f"{candidate_id}: {_words(found, '')}" if found else ""


def _words(end: Evaluation, after: str) -> str:
    if end.speedup is not None:
        return f"{end.status}{after}, {end.speedup:.3f}x eager"
    reason = " ".join(end.reason.split())
    shown = reason if len(reason) <= REASON_SHOWN else reason[: REASON_SHOWN - 1] + "…"
    return f"{end.status} ({end.reason_code}){after}: {shown}".rstrip(": ")
