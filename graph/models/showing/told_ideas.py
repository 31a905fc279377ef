"""Ideas that were tried, as a prompt tells them: what an elite beside them says already is not repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ridgeline.graph.models.requests import Elite, TriedIdea
from ridgeline.graph.models.showing.shortening import cut_words, in_brief, told_once

MOST_TITLES = 2_400
"""Characters of all titles: where they have more, those of the oldest ideas are cut to TITLE_SHOWN."""
TITLE_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldIdea:
    """One tried idea of a prompt."""

    idea: TriedIdea
    title: str
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
    says enough. A clause of a diagnosis is told once, and a sweep with the kernel that was tuned where that is shown.
    """
    known: set[str] = set()
    for elite in elites:
        told_once(elite.diagnosis, known)
    return [_told(idea, title, known, elites) for idea, title in zip(tried, _titles(tried), strict=True)]


def _titles(tried: Sequence[TriedIdea]) -> list[str]:
    titles = [idea.title for idea in tried]
    left = sum(map(len, titles)) - MOST_TITLES
    for place, title in enumerate(titles):
        if left <= 0:
            break
        titles[place] = cut_words(title, TITLE_SHOWN)
        left -= len(title) - len(titles[place])
    return titles


def _told(idea: TriedIdea, title: str, known: set[str], elites: Sequence[Elite]) -> ToldIdea:
    """Return an idea without the clauses of diagnoses that are `known` already, which get this one's."""
    has_kernel = any(elite.idea_id == idea.id for elite in elites)
    is_shown = any(elite.candidate_id == idea.best_candidate_id for elite in elites)
    is_brief = not (idea.ends or idea.before or idea.after)
    before, after = told_once(idea.before, known), told_once(idea.after, known)
    return ToldIdea(
        idea=idea,
        title=title,
        is_shown=is_shown,
        is_brief=is_brief,
        mechanism="" if has_kernel else in_brief(idea.mechanism) if is_brief else idea.mechanism,
        failure="" if idea.ends else idea.failure,
        before=before,
        after="" if is_shown else after,
        ends=tuple(end for end in idea.ends if end.partition(":")[0] != idea.best_candidate_id),
        sweep=() if is_shown or any(elite.sweep == idea.sweep for elite in elites) else idea.sweep,
    )
