"""Ideas that were tried, as a prompt tells them: what an elite beside them says already is not repeated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ridgeline.graph.models.requests import Elite, TriedIdea

MOST_SHOWN = 100
"""Characters of a mechanism or a failure in brief: the first sentence of most."""
_CUT = " …"
_SENTENCE = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldIdea:
    """One tried idea of a prompt."""

    idea: TriedIdea
    is_shown: bool = False  # its best kernel stands among the elites with its figures
    is_brief: bool = False  # of an older one only the result is told
    mechanism: str = ""
    failure: str = ""
    before: str = ""
    after: str = ""
    ends: tuple[str, ...] = ()
    sweep: tuple[str, ...] = ()


def told_ideas(tried: Sequence[TriedIdea], elites: Sequence[Elite]) -> list[ToldIdea]:
    """Return the ideas in their order.

    One of which only the result is known, as of the older ones, is told in brief. Of one whose kernel is shown the title
    says enough. A diagnosis is told once, and a sweep with the kernel that was tuned where that is shown.
    """
    told: list[ToldIdea] = []
    diagnoses = frozenset(elite.diagnosis for elite in elites)
    for idea in tried:
        told.append(_told(idea, diagnoses, elites))
        diagnoses |= {idea.before, idea.after}
    return told


def _told(idea: TriedIdea, known: frozenset[str], elites: Sequence[Elite]) -> ToldIdea:
    """Return an idea without the diagnoses that are `known` already."""
    has_kernel = any(elite.idea_id == idea.id for elite in elites)
    is_brief = not (idea.ends or idea.before or idea.after)
    before, after = ("" if text in known else text for text in (idea.before, idea.after))
    return ToldIdea(
        idea=idea,
        is_shown=any(elite.candidate_id == idea.best_candidate_id for elite in elites),
        is_brief=is_brief,
        mechanism="" if has_kernel else in_brief(idea.mechanism) if is_brief else idea.mechanism,
        failure="" if idea.ends else idea.failure,
        before=before,
        after=after,
        ends=tuple(end for end in idea.ends if end.partition(":")[0] != idea.best_candidate_id),
        sweep=() if any(elite.sweep == idea.sweep for elite in elites) else idea.sweep,
    )


def in_brief(text: str) -> str:
    """Return the first sentence of a text, cut between words where it is longer than MOST_SHOWN characters."""
    sentence = _SENTENCE.split(text.strip(), maxsplit=1)[0]
    if len(sentence) <= MOST_SHOWN:
        return sentence
    return sentence[: MOST_SHOWN - len(_CUT)].rsplit(maxsplit=1)[0] + _CUT
