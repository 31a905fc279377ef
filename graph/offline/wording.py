"""Compositions in words: an idea's sentences, and the structures that a text names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ridgeline.graph.offline.composer import Composer, Composition, ordered

_COUNTED = "".join(f"(?<!{count} )" for count in (r"\d", "two", "four", "eight", "several", "multiple", "many"))
_TYPE = r"(?:(?:b|bfloat|float|fp|f|tf|bf|int)[ -]?\d{1,2}\w*|\d{1,2}[ -]bits?|half|single|double|(?:low|high)er|mixed|reduced)"
_TYPE_OF_SUMS = re.compile(
    rf"{_COUNTED}\b{_TYPE}(?:[ -]precision)?[ -]accumulators?\b"
    rf"|\baccumulators? (?:in|of|as|to|with) (?:type )?{_TYPE}\b(?:[ -]precision)?"
    rf"|\b{_TYPE}(?:[ -]precision)? (?:for|in) (?:the |its |all )?accumulators?\b",
    re.IGNORECASE,
)
"""Words that ask for sums in another type, "float16 accumulators": no structure does that, whatever word it shares."""


def named_structures(composer: Composer, text: str) -> Composition:
    """Return the structures that titles, else names and keywords in a text name."""
    texts = composer.structures.texts
    titled = frozenset(s for s, t in texts.items() if t.title.lower() in text.lower())
    meant = _TYPE_OF_SUMS.sub("", text)
    return titled or frozenset(
        s for s, t in texts.items() if s in meant.lower() or re.search(t.keywords, meant, re.IGNORECASE)
    )


def composition_line(composer: Composer, structures: Iterable[str]) -> str:
    """Return the sentence that tells a reader a whole composition."""
    return f"Composition: {', '.join(ordered(composer, structures)) or 'none'}."


def name_together(composer: Composer, structures: Iterable[str]) -> str:
    """Return structures as one phrase: "a row buffer, inline polynomials and prefetching"."""
    *front, last = [composer.structures.texts[s].phrase for s in ordered(composer, structures)]
    return f"{', '.join(front)} and {last}" if front else last
