"""What a model is told of the tried ideas when the list is long."""

from __future__ import annotations

import dataclasses

from tests.graph.requests_made import TRIED, ideation

from ridgeline.graph.models.prompts import render_ideation
from ridgeline.graph.models.requests import TriedIdea
from ridgeline.graph.models.told_ideas import MOST_SHOWN, in_brief
from ridgeline.graph.search.ideas.digest import digest
from ridgeline.tools.records.vocabulary import IdeaOutcome

LONG = "a mechanism in many words, "


def tried(round_: int, outcome: IdeaOutcome = IdeaOutcome.REFUTED, **fields: object) -> TriedIdea:
    told = {"mechanism": LONG * 20, "ends": ("r1i0v0a0: ok",) * 4, "before": "memory-bound", "sweep": ("B=1: 1 ms",)}
    return dataclasses.replace(TRIED, id=f"r{round_}i0", round=round_, outcome=outcome, **(told | fields))


IDEAS = (
    tried(1),
    tried(2, IdeaOutcome.IMPROVED),
    tried(3, IdeaOutcome.IMPLEMENTATION_FAILED, tries_left=1),
    tried(4, IdeaOutcome.IMPLEMENTATION_FAILED),
    tried(5),
    tried(6),
)


def size(ideas: tuple[TriedIdea, ...]) -> int:
    return sum(len(i.title) + len(i.mechanism) + len(i.before) + sum(map(len, [*i.ends, *i.sweep])) for i in ideas)


def test_short_list_is_told_whole() -> None:
    assert digest(IDEAS, 7) == IDEAS


def test_long_list_keeps_the_last_rounds_what_improved_and_what_is_open_whole() -> None:
    told = digest(IDEAS, 7, limit=size(IDEAS) - 1)
    assert [idea == whole for idea, whole in zip(told, IDEAS, strict=True)] == [False, True, True, False, True, True]
    short = told[0]
    assert (short.title, short.outcome, short.best_speedup) == (TRIED.title, IdeaOutcome.REFUTED, TRIED.best_speedup)
    assert short.mechanism == in_brief(IDEAS[0].mechanism) != IDEAS[0].mechanism
    assert (short.ends, short.before, short.after, short.sweep) == ((), "", "", ())


def test_digest_keeps_to_its_limit_the_oldest_shortened_first() -> None:
    told = digest(IDEAS, 7, limit=2000)
    assert size(told) <= 2000
    assert told[-1] == IDEAS[-1]
    assert told[1] != IDEAS[1]


def test_no_title_is_left_out_however_short_the_limit() -> None:
    told = digest(IDEAS, 7, limit=10)
    assert [(idea.id, idea.title) for idea in told] == [(idea.id, idea.title) for idea in IDEAS]
    assert not any(idea.mechanism for idea in told)


def test_a_text_in_brief_is_its_first_sentence_or_the_words_that_fit_and_the_same_in_brief_again() -> None:
    assert in_brief("One pass. Another reason.") == "One pass."
    for text in (LONG * 20, "x" * 500, "word " * 19 + "words and more"):
        brief = in_brief(text)
        assert len(brief) <= MOST_SHOWN and brief.endswith(" …")
        assert text.startswith(brief.removesuffix(" …"))
        assert in_brief(brief) == brief


def test_a_prompt_tells_a_digest_as_it_is() -> None:
    (told, *_) = digest(IDEAS, 7, limit=2000)
    text = render_ideation(ideation(tried=(told,), elites=()))
    assert f": {told.mechanism} →" in text
