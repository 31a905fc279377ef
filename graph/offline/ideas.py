"""Structures as ideas: how a composition is put into words and read back from them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composer, Composition, ordered
from ridgeline.graph.search.novelty import COMPOSITION


def within_roofline(gain: float, subject: Subject) -> float:
    """Return a gain of at least 1 that does not reach past the roofline: the fastest baseline over the floor."""
    best = subject.baselines.best()
    floor = subject.baselines.floor.floor_ms
    headroom = best.median_ms / floor if best and best.median_ms and floor > 0 else 4.0
    return round(max(1.0, min(gain, headroom)), 2)


def named_structures(composer: Composer, text: str) -> Composition:
    """Return the structures that a composition line, a title or a person's words name."""
    match = COMPOSITION.search(text)
    if match:
        return frozenset(ordered(composer, match[1].replace(",", " ").split()))
    titled = frozenset(s for s, t in composer.texts.items() if t.title.lower() in text.lower())
    return titled or frozenset(s for s, t in composer.texts.items() if re.search(t.keywords, text, re.IGNORECASE))


def composition_line(composer: Composer, structures: Iterable[str]) -> str:
    """Return the sentence that names a whole composition, which `named_structures` reads back."""
    return f"Composition: {', '.join(ordered(composer, structures)) or 'none'}."


def name_together(composer: Composer, structures: Iterable[str]) -> str:
    """Return structures as one phrase: "a row buffer, inline polynomials and prefetching"."""
    *front, last = [composer.texts[s].phrase for s in ordered(composer, structures)]
    return f"{', '.join(front)} and {last}" if front else last
