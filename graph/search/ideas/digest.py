"""A digest of the tried ideas: what a model is told of them when the list is long."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ridgeline.graph.models.requests import TriedIdea
from ridgeline.graph.models.told_ideas import in_brief
from ridgeline.tools.records.vocabulary import IdeaOutcome

DIGEST_CHARS = 8_000
"""Characters of all tried ideas in a prompt, about 2,200 tokens; only their titles may exceed it."""
FRESH_ROUNDS = 2
"""Rounds whose ideas are told whole: what they taught is what the next ideas build on."""


def digest(tried: Sequence[TriedIdea], round_: int, limit: int = DIGEST_CHARS) -> tuple[TriedIdea, ...]:
    """Return all ideas for the models of round `round_`, shortened where together they exceed `limit` characters.

    Ideas of the last rounds, those that improved and those that may be tried again stay whole; the others keep their
    result and their mechanism in brief. Where that is too long still, the oldest are shortened first, at last to
    their titles. No idea is left out, since none should be repeated.
    """
    if _size(tried) <= limit:
        return tuple(tried)
    told = [idea if _stays_whole(idea, round_) else _compact(idea) for idea in tried]
    left = _size(told) - limit
    for shorten in (_compact, _titled):
        for place, idea in enumerate(told):
            if left <= 0:
                return tuple(told)
            told[place] = shorten(idea)
            left -= _size([idea]) - _size([told[place]])
    return tuple(told)


def _stays_whole(idea: TriedIdea, round_: int) -> bool:
    is_fresh = idea.round >= round_ - FRESH_ROUNDS
    return is_fresh or idea.outcome is IdeaOutcome.IMPROVED or idea.tries_left > 0


def _compact(idea: TriedIdea) -> TriedIdea:
    return dataclasses.replace(
        idea, mechanism=in_brief(idea.mechanism), failure=in_brief(idea.failure), ends=(), before="", after="", sweep=()
    )


def _titled(idea: TriedIdea) -> TriedIdea:
    return dataclasses.replace(_compact(idea), mechanism="", failure="")


def _size(ideas: Sequence[TriedIdea]) -> int:
    texts = ((i.title, i.mechanism, i.failure, i.before, i.after, *i.ends, *i.sweep) for i in ideas)
    return sum(len(text) for found in texts for text in found)
