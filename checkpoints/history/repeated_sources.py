"""Kernels whose source an earlier kernel of the search has too: another idea of the same author, or of a user, led to it."""

from __future__ import annotations

from collections.abc import Iterable

from ridgeline.checkpoints.archive import Archive
from ridgeline.tools.records.search import Candidate


def repeated_sources(candidates: Iterable[Candidate]) -> dict[str, str]:
    """Return, by the id of each kernel that repeats one, the id of the first with its source; a kernel of "" is none."""
    first: dict[str, str] = {}
    repeated = {}
    for candidate in candidates:
        earlier = first.setdefault(candidate.source, candidate.id)
        if candidate.source and earlier != candidate.id:
            repeated[candidate.id] = earlier
    return repeated


def same_source_as(archive: Archive, candidate_id: str) -> str:
    """Return the id of the first kernel with this one's source, "" where that is this one."""
    row = archive.database.first(
        "SELECT first.id FROM candidates own JOIN candidates first ON first.source = own.source "
        "WHERE own.id = ? AND own.source <> '' ORDER BY first.rowid LIMIT 1",
        [candidate_id],
    )
    return row["id"] if row and row["id"] != candidate_id else ""


def repeat_words(earlier: str) -> str:
    """Return "same source as r1i0v0a0", "" without an earlier kernel."""
    return f"same source as {earlier}" if earlier else ""
