"""A digest of the tried ideas: what a model is told of them when the list is long."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ridgeline.graph.models.requests import TriedIdea
from ridgeline.graph.models.showing.shortening import cut_words, in_brief, whole_clauses

DIGEST_CHARS = 3_600
"""Characters of all tried ideas in a prompt, 1,000 tokens; only the titles of a long search may exceed it."""
FIGURES_CHARS = 80
"""Characters of an idea's id, parent, gain and outcome, about."""
MECHANISM_CHARS = 240
"""Of a mechanism, a diagnosis or an end of the last round's ideas, where not all of it fits."""
ROWS = 2
"""Of a sweep that no kernel beside it shows, where not all of it fits."""


def digest(tried: Sequence[TriedIdea], round_: int, limit: int = DIGEST_CHARS) -> tuple[TriedIdea, ...]:
    """Return all ideas for the models of round `round_`, shortened where together they exceed `limit` characters.

    The last round's ideas keep the beginning of their mechanism, how their implementations ended and the diagnosis of the
    best; the others their result and the first sentence of their mechanism. Where that is too long still, the oldest are
    shortened first to their titles, then the last round's are told as the others. No title is left out, since none should be
    repeated; a prompt cuts the longest of them.
    """
    if _size(tried) <= limit:
        return tuple(tried)
    is_fresh = [idea.round >= round_ - 1 for idea in tried]
    told = [_trimmed(idea) if fresh else _compact(idea) for idea, fresh in zip(tried, is_fresh, strict=True)]
    older = [place for place, fresh in enumerate(is_fresh) if not fresh]
    last = [place for place, fresh in enumerate(is_fresh) if fresh]
    for places, shorten in ((older, _titled), (last, _compact), (last, _titled)):
        _shorten(told, places, shorten, limit)
    return tuple(told)


def _shorten(
    told: list[TriedIdea], places: Sequence[int], shorten: Callable[[TriedIdea], TriedIdea], limit: int
) -> None:
    """Shorten the ideas at these places, one after another, until all fit."""
    left = _size(told) - limit
    for place in places:
        if left <= 0:
            return
        short = shorten(told[place])
        left -= _size([told[place]]) - _size([short])
        told[place] = short


def _trimmed(idea: TriedIdea) -> TriedIdea:
    return dataclasses.replace(
        idea,
        mechanism=cut_words(idea.mechanism, MECHANISM_CHARS),
        failure=cut_words(idea.failure, MECHANISM_CHARS),
        before="",
        after=whole_clauses(idea.after, MECHANISM_CHARS),
        ends=tuple(cut_words(end, MECHANISM_CHARS) for end in idea.ends),
        sweep=idea.sweep[:ROWS],
    )


def _compact(idea: TriedIdea) -> TriedIdea:
    return dataclasses.replace(
        idea, mechanism=in_brief(idea.mechanism), failure=in_brief(idea.failure), ends=(), before="", after="", sweep=()
    )


def _titled(idea: TriedIdea) -> TriedIdea:
    return dataclasses.replace(_compact(idea), mechanism="", failure="")


def _size(ideas: Sequence[TriedIdea]) -> int:
    texts = ((i.title, i.mechanism, i.failure, i.before, i.after, *i.ends, *i.sweep) for i in ideas)
    return FIGURES_CHARS * len(ideas) + sum(len(text) for found in texts for text in found)
