"""What a model is told of the tried ideas when the list is long."""

from __future__ import annotations

import dataclasses

from tests.graph.requests_made import TRIED, ideation

from ridgeline.graph.models.prompts import render_ideation
from ridgeline.graph.models.requests import TriedIdea
from ridgeline.graph.models.showing.shortening import in_brief
from ridgeline.graph.search.ideas.digest import DIGEST_CHARS, FIGURES_CHARS, MECHANISM_CHARS, digest
from ridgeline.tools.records.vocabulary import IdeaOutcome

LONG = "a mechanism in many words, "


def tried(round_: int, outcome: IdeaOutcome = IdeaOutcome.REFUTED, **fields: object) -> TriedIdea:
    told: dict[str, object] = {
        "after": "Memory-bound. Spills.",
        "mechanism": LONG * 20,
        "ends": ("r1i0v0a0: ok",) * 4,
        "before": "Memory-bound.",
        "sweep": ("B=1: 1 ms",),
    }
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
    texts = (text for i in ideas for text in (i.title, i.mechanism, i.before, i.after, *i.ends, *i.sweep))
    return sum(map(len, texts))


def test_short_list_is_told_whole() -> None:
    assert digest(IDEAS, 7, limit=10_000) == IDEAS


def test_long_list_tells_details_of_the_last_round_alone() -> None:
    told = digest(IDEAS, 7)
    assert size(told) <= DIGEST_CHARS
    for idea, whole in zip(told[:-1], IDEAS[:-1], strict=True):
        assert (idea.title, idea.outcome, idea.best_speedup) == (whole.title, whole.outcome, whole.best_speedup)
        assert (idea.ends, idea.before, idea.after, idea.sweep) == ((), "", "", ())
        assert idea.mechanism == in_brief(whole.mechanism) != whole.mechanism
    assert told[2].tries_left == 1
    last = told[-1]
    assert (last.ends, last.after) == (IDEAS[-1].ends, "Memory-bound. Spills.")
    assert last.mechanism != LONG * 20 and len(in_brief(LONG * 20)) < len(last.mechanism) <= MECHANISM_CHARS


def test_a_long_diagnosis_of_the_last_round_is_cut_between_its_clauses() -> None:
    (told,) = digest([tried(6, after="Its time. " + "and so on, " * 40 + ".")], 7, limit=500)
    assert told.after == "Its time."


def test_digest_keeps_to_its_limit_the_oldest_shortened_first() -> None:
    told = digest(IDEAS, 7, limit=1300)
    assert size(told) + FIGURES_CHARS * len(told) <= 1300
    assert not told[0].mechanism and told[4].mechanism and told[-1].ends


def test_no_title_is_left_out_however_short_the_limit() -> None:
    told = digest(IDEAS, 7, limit=10)
    assert [(idea.id, idea.title) for idea in told] == [(idea.id, idea.title) for idea in IDEAS]
    assert not any(idea.mechanism or idea.ends for idea in told)


def test_a_prompt_cuts_the_oldest_of_many_long_titles() -> None:
    long = [dataclasses.replace(IDEAS[0], id=f"r{n}i0", title=f"title {n} {'word ' * 25}".strip()) for n in range(30)]
    text = render_ideation(ideation(tried=tuple(long), elites=()))
    shown = [line for line in text.splitlines() if line.startswith("- `r")]
    assert len(shown) == 30 and all(f"title {n} word" in line for n, line in enumerate(shown))
    assert len(shown[0]) < len(shown[-1]) and long[-1].title in shown[-1] and " …" in shown[0]


def test_a_prompt_tells_a_digest_as_it_is() -> None:
    (told, *_) = digest(IDEAS, 7)
    text = render_ideation(ideation(tried=(told,), elites=()))
    assert f": {told.mechanism} →" in text
