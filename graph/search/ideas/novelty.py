"""Detection of repeated ideas: two drafts that say the same in other words, and which of them may be tried again."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from ridgeline.graph.models.requests import IdeaDraft, Stated, TriedIdea
from ridgeline.tools.records.vocabulary import IdeaOutcome

MOST_TRIES = 3
"""Times that one idea is tried in all while its implementations fail: by then three authors' kernels were wrong."""

SAME_TITLE = 0.8
SAME_MECHANISM = 0.75
"""Jaccard overlap of content words; restated ideas of the same model measured 0.8 and up, related ones below 0.6."""

NOISE = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "each",
        "for",
        "from",
        "in",
        "into",
        "is",
        "it",
        "its",
        "of",
        "on",
        "one",
        "or",
        "so",
        "that",
        "the",
        "their",
        "then",
        "this",
        "to",
        "use",
        "using",
        "used",
        "with",
        "which",
        "while",
        "per",
        "instead",
    ]
)


class Composed(Stated, Protocol):
    """The same with what the offline model puts together."""

    @property
    def composition(self) -> tuple[str, ...] | None:
        """Return the structures of an idea of the offline model."""
        ...


@functools.lru_cache(maxsize=2048)
def words(text: str) -> frozenset[str]:
    """Return the content words of a text in any script, lower case, plurals and punctuation gone; numbers stay."""
    found = re.findall(r"[^\W_]+", text.lower())
    return frozenset(w[:-1] if len(w) > 3 and w.endswith("s") else w for w in found if w not in NOISE)


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the Jaccard index of two sets of words."""
    union = first | second
    return len(first & second) / len(union) if union else 1.0


def is_refused(draft: IdeaDraft, tried: Sequence[TriedIdea]) -> bool:
    """Say whether `draft` repeats ideas of earlier rounds that are closed.

    An idea whose implementations all failed says nothing of the idea: it may be tried again, MOST_TRIES times in all.
    """
    repeated = [idea for idea in tried if is_repeated(draft, draft.parent_id, [(idea, idea.parent_id)])]
    return not _are_open(repeated)


def tries_left(idea: TriedIdea, tried: Sequence[TriedIdea]) -> int:
    """Return how often an idea may be proposed again; 0 once an implementation of it was right."""
    repeated = [other for other in tried if is_repeated(idea, idea.parent_id, [(other, other.parent_id)])]
    return MOST_TRIES - len(repeated) if _are_open(repeated) else 0


def _are_open(repeated: Sequence[TriedIdea]) -> bool:
    have_failed = all(idea.outcome is IdeaOutcome.IMPLEMENTATION_FAILED for idea in repeated)
    return have_failed and len(repeated) < MOST_TRIES


def is_repeated(
    draft: IdeaDraft | TriedIdea, parent_id: str | None, tried: Iterable[tuple[Composed, str | None]]
) -> bool:
    """Say whether `draft` repeats one of `tried` (idea, its parent).

    The same words on another parent kernel are another experiment, so only the same title and mechanism together
    repeat then. Two ideas that have a composition are compared by it alone: such ideas share most of their words (of 26
    different ones, 14 looked repeated by overlap).
    """
    title, mechanism = words(draft.title), words(draft.mechanism)
    for idea, other_parent in tried:
        if draft.composition is not None and idea.composition is not None:
            if draft.composition == idea.composition:
                return True
            continue
        same_title = overlap(title, words(idea.title)) >= SAME_TITLE
        same_mechanism = overlap(mechanism, words(idea.mechanism)) >= SAME_MECHANISM
        if (same_title and same_mechanism) or (parent_id == other_parent and (same_title or same_mechanism)):
            return True
    return False
