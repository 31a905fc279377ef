"""The compositions to try next: single structures first, then combinations of those that gained, on the best kernels."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from ridgeline.checkpoints.steering import mechanism_of
from ridgeline.graph.models.requests import Elite, IdeaDraft, IdeationRequest, TriedIdea
from ridgeline.graph.offline.composer import Composer, Composition, composition_of, merge, ordered, structures_of
from ridgeline.graph.offline.wording import composition_line, name_together, named_structures
from ridgeline.tools.records.baselines import Baselines

DISAPPOINTING = 0.97
"""A structure that brought less than this share of its parent's speed is not combined further; above it is noise."""
MAX_TITLE = 160
UNCHANGED = 1.01
"""The gain that the base by itself is ranked with: after every structure that should improve it, before the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposal:
    composition: Composition
    added: Composition
    parent: Elite | None
    second: Elite | None = None
    gain: float = 1.0  # over the best kernel; proposals are ranked by it
    over_parent: float = 1.0  # over the parent, else over the plain composition; the idea's predicted gain


def propose_ideas(composer: Composer, request: IdeationRequest) -> list[IdeaDraft]:
    """Return at most `request.count` ideas, fewer where no composition is left.

    None has a composition that was tried, or that one of the user's ideas leads to: those are tried before these.
    """
    history = _History(composer, request)
    found: list[IdeaDraft] = []
    for proposal in history.ranked():
        if len(found) == request.count:
            break
        draft = _draft(composer, proposal)
        if proposal.composition not in history.seen and draft.title not in request.refused:
            history.seen.add(proposal.composition)
            found.append(draft)
    return found


def within_roofline(gain: float, baselines: Baselines) -> float:
    """Return a gain of at least 1 that does not reach past the roofline: the fastest baseline over the floor."""
    best = baselines.best()
    floor = baselines.floor.floor_ms
    headroom = best.median_ms / floor if best and best.median_ms and floor > 0 else 4.0
    return round(max(1.0, min(gain, headroom)), 2)


class _History:
    """The tried ideas and the elites, read as compositions."""

    def __init__(self, composer: Composer, request: IdeationRequest) -> None:
        self.composer, self.request = composer, request
        self.usable = composer.applicable()
        self.elites = sorted(request.elites, key=lambda e: -e.speedup)
        self.sources = {e.candidate_id: composition_of(composer, e.source) for e in self.elites}
        self.seen = {self._tried_composition(t) for t in request.tried}
        self.seen |= {c for e in self.elites if (c := structures_of(e.source)) is not None}
        self.gains = self._observed_gains()
        self.seen |= set(self._of_user())

    def _tried_composition(self, tried: TriedIdea) -> Composition:
        own = tried.composition
        found = named_structures(self.composer, tried.mechanism) if own is None else frozenset(own)
        return found & frozenset(self.usable)

    def _observed_gains(self) -> dict[str, float]:
        """Return the gain of each structure where it was the only change; 0.0 where it failed."""
        speeds = {t.best_candidate_id: t.best_speedup for t in self.request.tried if t.best_candidate_id}
        speeds |= {e.candidate_id: e.speedup for e in self.elites}
        known = {self._tried_composition(t): t.best_speedup for t in self.request.tried}
        gains: dict[str, float] = {}
        for tried in self.request.tried:
            composition = self._tried_composition(tried)
            for structure in composition:
                before = known.get(composition - {structure}) or speeds.get(tried.parent_id or "")
                is_single = composition - self.composer.base() == {structure}
                if (composition - {structure}) not in known and not is_single:
                    continue
                before = before or self._slowest_sibling(tried)
                gain = (tried.best_speedup or 0.0) / before
                gains[structure] = max(gain, gains.get(structure, 0.0))
        return gains

    def _slowest_sibling(self, tried: TriedIdea) -> float:
        """Return the speed to compare with when the parent's own is not known any more."""
        speeds = [t.best_speedup for t in self.request.tried if t.parent_id == tried.parent_id and t.best_speedup]
        return min(speeds, default=1.0)

    def _gain(self, structure: str) -> float:
        expected = within_roofline(self.composer.expected_gain(structure), self.request.baselines)
        return self.gains.get(structure) or expected

    def _is_promising(self, structure: str) -> bool:
        return self.gains.get(structure, 1.0) >= DISAPPOINTING

    def _of_user(self) -> Iterator[Composition]:
        """Yield what was composed for the user's ideas, and what is composed this round, which starts from the first elite."""
        first_id = self.request.elites[0].candidate_id if self.elites else None
        parents = {tried.mechanism: tried.parent_id for tried in self.request.tried}
        for words in self.request.user_ideas:
            parent_id = parents.get(mechanism_of(words), first_id)
            start = self.sources.get(parent_id) if parent_id else self.composer.base()
            named = named_structures(self.composer, words) & frozenset(self.usable)
            if named and start is not None:
                yield merge(self.composer, start, named)

    def ranked(self) -> list[_Proposal]:
        """Return compositions of promising structures, the largest gain first; the rng seed breaks ties."""
        rng = random.Random(f"{self.request.rng_seed}:{self.request.round}")
        singles = [s for s in self.usable if self._is_promising(s)]
        proposals = [self._extend(self._best(), frozenset({s})) for s in singles]
        if self.request.tried:
            proposals += self._combinations(singles) + self._recombinations()
        fresh = [p for p in proposals if p.composition != self._start(p.parent)]
        base = self.composer.base()
        if base:
            fresh.append(_Proposal(composition=base, added=base, parent=None, gain=UNCHANGED, over_parent=UNCHANGED))
        return sorted(fresh, key=lambda p: (-p.gain, len(p.added), rng.random()))

    def _combinations(self, singles: list[str]) -> list[_Proposal]:
        """Return the best kernels with several more structures: all that gained, each pair, each triple."""
        winners = frozenset(s for s in singles if self.gains.get(s, 0.0) > 1.0)
        groups = [winners] if len(winners) > 1 else []
        groups += [frozenset(g) for size in (2, 3) for g in itertools.combinations(singles, size)]
        parents: list[Elite | None] = [*self.elites[:2]] or [None]
        return [self._extend(parent, group) for parent in parents for group in groups]

    def _recombinations(self) -> list[_Proposal]:
        found = []
        for first, second in itertools.combinations(self.elites[:4], 2):
            extra = self.sources[second.candidate_id] - self.sources[first.candidate_id]
            extra = frozenset(s for s in extra if self._is_promising(s))
            if extra:
                found.append(self._extend(first, extra, second=second))
        return found

    def _best(self) -> Elite | None:
        return self.elites[0] if self.elites else None

    def _start(self, parent: Elite | None) -> Composition:
        return self.sources[parent.candidate_id] if parent else self.composer.base()

    def _extend(self, parent: Elite | None, added: Composition, *, second: Elite | None = None) -> _Proposal:
        start = self._start(parent)
        composition = merge(self.composer, start, added)
        new = composition - start
        scale = parent.speedup / self.elites[0].speedup if parent else 1.0
        lost = math.prod(self._gain(s) for s in sorted(start - composition))
        gain = math.prod(self._gain(s) for s in sorted(new)) / max(lost, 0.1)
        return _Proposal(
            composition=composition,
            added=new,
            parent=parent,
            second=second,
            gain=scale * gain,
            over_parent=gain,
        )


def _draft(composer: Composer, proposal: _Proposal) -> IdeaDraft:
    added = ordered(composer, proposal.added)
    lead = composer.structures.texts[added[0]] if added else None
    title = _title(composer, proposal, added)
    sentences = [composer.structures.texts[s].mechanism for s in added]
    if proposal.second is not None:
        sentences.insert(0, "Recombines two of the best kernels.")
    return IdeaDraft(
        title=title,
        mechanism=" ".join([*sentences, composition_line(composer, proposal.composition)]),
        category=lead.category if lead else "control_flow_and_loops",  # type: ignore[arg-type]
        predicted_gain=min(max(round(proposal.over_parent, 2), 0.1), 1000.0),
        parent_id=proposal.parent.candidate_id if proposal.parent else None,
        second_parent_id=proposal.second.candidate_id if proposal.second else None,
        composition=tuple(ordered(composer, proposal.composition)),
    )


def _title(composer: Composer, proposal: _Proposal, added: list[str]) -> str:
    """Return the idea in a line: the leading structure, those added with it, those that the kernel already has."""
    title = composer.structures.texts[added[0]].title if added else "Take out what did not pay"
    title += f", with {name_together(composer, added[1:])}" if added[1:] else ""
    kept = proposal.composition - proposal.added
    title += f" (on {name_together(composer, kept)})" if kept else ""
    return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1] + "…"
