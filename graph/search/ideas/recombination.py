"""Recombination: two lineages that improved apart, for one idea of the next round to join."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ridgeline.graph.models.requests import Elite, TriedIdea
from ridgeline.graph.search.sources.tuning import FAR_BEHIND
from ridgeline.tools.records.search import Candidate, Idea
from ridgeline.tools.records.vocabulary import IdeaOutcome

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive


def pair_to_recombine(archive: Archive, tried: Sequence[TriedIdea]) -> tuple[str, str] | None:
    """Return the best kernels of two ideas that improved since the last recombination, neither grown from the other.

    The fastest such pair, its faster kernel first; None where there is none. A kernel below FAR_BEHIND of the other's
    speed is not joined to it.
    """
    ideas = {idea.id: idea for idea in archive.ideas()}
    candidates = {candidate.id: candidate for candidate in archive.candidates()}
    since = max((idea.round for idea in ideas.values() if idea.second_parent_id), default=0)
    improved = [t for t in tried if t.outcome is IdeaOutcome.IMPROVED and t.round >= since]
    improved.sort(key=lambda idea: -(idea.best_speedup or 0.0))
    origins = {idea.id: _origins(idea.id, ideas, candidates) for idea in improved}
    for first, second in itertools.combinations(improved, 2):
        is_near = (second.best_speedup or 0.0) >= FAR_BEHIND * (first.best_speedup or 0.0)
        is_apart = first.id not in origins[second.id] and second.id not in origins[first.id]
        if is_near and is_apart and first.best_candidate_id and second.best_candidate_id:
            return first.best_candidate_id, second.best_candidate_id
    return None


def named_as_shown(pair: tuple[str, str], elites: Sequence[Elite]) -> tuple[str, str]:
    """Return the kernels of a pair by the names under which a prompt shows them.

    Of kernels that differ in tuned constants alone it shows the first of `elites`, which hold the pair. Another one is the
    best of its idea where the timing in turns ranked otherwise than the search.
    """
    written = {elite.candidate_id: elite.written_id for elite in elites}
    shown: dict[str, str] = {}
    for elite in elites:
        shown.setdefault(elite.written_id, elite.candidate_id)
    first, second = (shown.get(written.get(name, name), name) for name in pair)
    return first, second


def _origins(idea_id: str, ideas: Mapping[str, Idea], candidates: Mapping[str, Candidate]) -> set[str]:
    """Return the idea and all ideas that its kernels grew from, second parents' among them."""
    found: set[str] = set()
    waiting = [idea_id]
    while waiting:
        idea = ideas.get(waiting.pop())
        if idea is None or idea.id in found:
            continue
        found.add(idea.id)
        parents = (candidates.get(parent or "") for parent in (idea.parent_id, idea.second_parent_id))
        waiting += [parent.idea_id for parent in parents if parent and parent.idea_id]
    return found
