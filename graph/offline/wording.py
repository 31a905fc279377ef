"""Compositions in words: an idea's sentences, and the structures that a text names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ridgeline.graph.offline.composer import Composer, Composition, ordered


def named_structures(composer: Composer, text: str) -> Composition:
    """Return the structures that titles, else names and keywords in a text name."""
    texts = composer.structures.texts
    titled = frozenset(s for s, t in texts.items() if t.title.lower() in text.lower())
    return titled or frozenset(
        s for s, t in texts.items() if s in text.lower() or re.search(t.keywords, text, re.IGNORECASE)
    )


def composition_line(composer: Composer, structures: Iterable[str]) -> str:
    """Return the sentence that tells a reader a whole composition."""
    return f"Composition: {', '.join(ordered(composer, structures)) or 'none'}."


def name_together(composer: Composer, structures: Iterable[str]) -> str:
    """Return structures as one phrase: "a row buffer, inline polynomials and prefetching"."""
    *front, last = [composer.structures.texts[s].phrase for s in ordered(composer, structures)]
    return f"{', '.join(front)} and {last}" if front else last
