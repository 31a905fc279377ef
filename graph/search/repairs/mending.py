"""Kernels that do not build, made anew without a call: by the compiler's fix-its, or by the edit of a sibling's repair.

All is a function of what the archive holds, so that a resumed search goes the same way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.models.edits import UnfitEdit, apply_edits, edits_between
from ridgeline.graph.search.branch import branch_of_candidate
from ridgeline.tools.build.fix_its import apply_fix_its
from ridgeline.tools.build.messages import error_signature
from ridgeline.tools.records.keys import attempt_id, mended_id
from ridgeline.tools.records.search import Candidate, Mending
from ridgeline.tools.records.vocabulary import Mender, Origin, Status

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.recording.recording import RecordedMending
    from ridgeline.tools.records.results import Evaluation

MOST_FIX_IT_PASSES = 2
"""A compiler that lacks a header sees no further than that: the second pass mends what only then comes to light."""
MOST_SIBLING_EDITS = 8
"""Changes of a sibling's repair that are tried elsewhere; more of them are a kernel of its own."""
_LINE_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One candidate of an attempt with how it ended; None: it was not judged."""

    candidate: Candidate
    evaluation: Evaluation | None

    @property
    def is_unbuilt(self) -> bool:
        """Say whether the compiler or the linker refused it."""
        return self.evaluation is not None and self.evaluation.status is Status.COMPILE_ERROR

    @property
    def signature(self) -> str:
        """Return what it has in common with other candidates that do not build for the same reason, of one round."""
        found = self.evaluation
        return f"{self.candidate.round}: {error_signature(found.reason_code, found.reason) if found else ''}"

    def is_better_than(self, other: Try) -> bool:
        """Say whether it got past the compiler, or has fewer errors there."""
        if self.evaluation is None:
            return False
        return not self.is_unbuilt or 0 < _errors(self) < _errors(other)


def read_tries(archive: Archive, attempt: str) -> list[Try]:
    """Return an attempt's candidate and those made of it without a call, oldest first; nothing before it is written."""
    tries: list[Try] = []
    candidate_id = attempt
    while True:
        try:
            candidate = archive.candidate(candidate_id)
        except KeyError:
            return tries
        tries.append(Try(candidate=candidate, evaluation=archive.evaluation(candidate_id)))
        candidate_id = mended_id(attempt, len(tries))


def best_of(tries: Sequence[Try]) -> Try:
    """Return the try that a repair starts from: the last one that was better than those before."""
    best = tries[0]
    for tried in tries[1:]:
        best = tried if tried.is_better_than(best) else best
    return best


def with_fix_its(tries: Sequence[Try]) -> Candidate | None:
    """Return the newest try with the compiler's fix-its, None where it has none or may have no further pass.

    Each source gets one pass; there is a second one where the first left fewer errors.
    """
    last = tries[-1]
    passes = sum(1 for t in tries if t.candidate.mending and t.candidate.mending.by is Mender.FIX_ITS)
    if best_of(tries) is not last or passes >= MOST_FIX_IT_PASSES:
        return None
    build = last.evaluation.build if last.evaluation else None
    source, changes = apply_fix_its(last.candidate.source, build.fix_its if build else ())
    return _mended(tries, last, source, Mender.FIX_ITS, changes)


def with_edit_of(archive: Archive, tries: Sequence[Try], repaired_id: str) -> Candidate | None:
    """Return the best try with the edit that repaired the same error in another branch, None where it does not fit."""
    repaired = archive.candidate(repaired_id)
    if not repaired.idea_id or repaired.attempt < 1:
        return None
    before = best_of(read_tries(archive, attempt_id(repaired.idea_id, repaired.variation, repaired.attempt - 1)))
    edits = edits_between(before.candidate.source, repaired.source)
    base = best_of(tries)
    if not 0 < len(edits) <= MOST_SIBLING_EDITS:
        return None
    try:
        source = apply_edits(base.candidate.source, edits)
    except UnfitEdit:
        return None
    changes = tuple(f"`{_line(e.search)}` becomes `{_line(e.replace)}`" for e in edits)
    return _mended(tries, base, source, Mender.SIBLING, changes, sibling_id=repaired_id)


def as_recorded(tries: Sequence[Try], recorded: RecordedMending) -> Candidate | None:
    """Return what a recorded search made of this attempt by another branch's edit, None where it was tried."""
    base = best_of(tries)
    if any(recorded.source == tried.candidate.source for tried in tries):
        return None
    mending = dataclasses.replace(recorded.mending, failed_id=base.candidate.id)
    candidate_id = mended_id(tries[0].candidate.id, len(tries))
    return dataclasses.replace(base.candidate, id=candidate_id, source=recorded.source, mending=mending)


def is_from_sibling(tries: Sequence[Try]) -> bool:
    """Say whether a sibling's edit was tried in this attempt."""
    return any(t.candidate.mending and t.candidate.mending.by is Mender.SIBLING for t in tries)


def find_repaired(archive: Archive, signature: str, round_: int, branch: str) -> str | None:
    """Return the first candidate of another branch of the round that had this error before its repair and then built."""
    for candidate in archive.candidates(round=round_, origin=Origin.MODEL):
        own = branch_of_candidate(candidate)
        if not candidate.idea_id or candidate.attempt < 1 or candidate.mending or own == branch:
            continue
        evaluation = archive.evaluation(candidate.id)
        if evaluation is None or evaluation.build is None or evaluation.build.status is not Status.OK:
            continue
        tries = read_tries(archive, attempt_id(candidate.idea_id, candidate.variation, candidate.attempt - 1))
        if tries and best_of(tries).is_unbuilt and best_of(tries).signature == signature:
            return candidate.id
    return None


def mended_words(candidate: Candidate) -> str:
    """Return what was changed in a kernel without a call, "" for one that its model wrote as it is."""
    mending = candidate.mending
    if mending is None:
        return ""
    by = (
        "the compiler's own fix-its" if mending.by is Mender.FIX_ITS else "an edit that mended the same error elsewhere"
    )
    return "\n".join([f"Changed in your source already, by {by}:", *(f"- {change}" for change in mending.changes)])


def _mended(
    tries: Sequence[Try],
    base: Try,
    source: str,
    by: Mender,
    changes: tuple[str, ...],
    *,
    sibling_id: str | None = None,
) -> Candidate | None:
    """Return the next candidate of an attempt, None where the source is one that was tried."""
    if any(source == tried.candidate.source for tried in tries):
        return None
    earlier = base.candidate.mending.changes if base.candidate.mending else ()
    mending = Mending(by=by, failed_id=base.candidate.id, changes=(*earlier, *changes), sibling_id=sibling_id)
    candidate_id = mended_id(tries[0].candidate.id, len(tries))
    return dataclasses.replace(base.candidate, id=candidate_id, source=source, mending=mending)


def _errors(tried: Try) -> int:
    build = tried.evaluation.build if tried.evaluation else None
    return build.errors if build else 0


def _line(text: str) -> str:
    """Return the first line of a text that says something, marked where it is not all."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    is_all = len(line) <= _LINE_SHOWN and line == text.strip()
    return line if is_all else f"{line[:_LINE_SHOWN]} …"
