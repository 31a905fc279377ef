"""Ideas that were tried, as a prompt tells them: what an elite beside them says already is named, not repeated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ridgeline.graph.models.requests import Elite, TriedIdea
from ridgeline.graph.models.shown_kernels import is_of

DIGEST_CHARS = 120
"""Most of a mechanism in a digest: the first sentence of most."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldIdea:
    """One tried idea of a prompt."""

    idea: TriedIdea
    mechanism: str
    is_digest: bool = False
    before: str = ""
    after: str = ""
    sweep: tuple[str, ...] = ()


def told_ideas(tried: Sequence[TriedIdea], elites: Sequence[Elite]) -> list[ToldIdea]:
    """Return the ideas in their order.

    One of which only the result is known, as of the older ones, is a digest, and so is one whose kernel is shown. A
    diagnosis is told once, and a sweep with its idea's kernel where that is shown.
    """
    known = {elite.diagnosis for elite in elites}
    return [_told(idea, known, elites) for idea in tried]


def _told(idea: TriedIdea, known: set[str], elites: Sequence[Elite]) -> ToldIdea:
    if not (idea.ends or idea.before or idea.after):
        return ToldIdea(idea=idea, mechanism=digest(idea.mechanism), is_digest=True)
    before, after = ("" if text in known else text for text in (idea.before, idea.after))
    known |= {idea.before, idea.after}
    has_kernel = any(is_of(elite, idea) for elite in elites)
    return ToldIdea(
        idea=idea,
        mechanism=digest(idea.mechanism) if has_kernel else idea.mechanism,
        before=before,
        after=after,
        sweep=() if has_kernel else idea.sweep,
    )


def digest(mechanism: str) -> str:
    """Return the first sentence of a mechanism, cut where it is long."""
    sentence = _SENTENCE.split(mechanism.strip(), maxsplit=1)[0]
    return sentence if len(sentence) <= DIGEST_CHARS else sentence[:DIGEST_CHARS].rsplit(maxsplit=1)[0] + " …"
