"""Repeated ideas: which are refused, and which may be tried again."""

from __future__ import annotations

import dataclasses

import pytest
from tests.graph.requests_made import TRIED as OTHER

from ridgeline.graph.models.requests import IdeaDraft, TriedIdea
from ridgeline.graph.search.ideas.novelty import MOST_TRIES, is_refused, is_repeated, tries_left
from ridgeline.tools.records.vocabulary import Category, IdeaOutcome


def draft(title: str, mechanism: str, composition: tuple[str, ...] | None = None) -> IdeaDraft:
    return IdeaDraft(title=title, mechanism=mechanism, category=Category.COMPUTE, composition=composition)


TRIED = draft("Use streaming stores for the output", "bypass the cache so that inputs stay in it")


@pytest.mark.parametrize(
    "other",
    [
        draft("use Streaming Stores, for outputs", "something else entirely happens here"),
        draft("Another title", "Bypass the caches, so that the inputs stay in them"),
    ],
)
def test_same_idea_in_other_words_is_repeated(other: IdeaDraft) -> None:
    assert is_repeated(other, "p", [(TRIED, "p")])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("Векторизация строк", "обрабатывать строки по восемь"), ("Потоковая запись", "не занимать кэш выходом")),
        (("寄存器分块", "每个线程在寄存器中保留一块输出"), ("流式写入", "输出绕过缓存直接写入内存")),
    ],
)
def test_ideas_in_any_script_are_told_apart(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert not is_repeated(draft(*one), "p", [(draft(*other), "p")])
    assert is_repeated(draft(*one), "p", [(draft(*one), "p")])


def test_related_idea_is_new() -> None:
    other = draft("Use streaming loads for the input", "read with non-temporal hints and prefetch the next row")
    assert not is_repeated(other, "p", [(TRIED, "p")])


def test_same_title_on_another_parent_is_another_experiment() -> None:
    other = draft(TRIED.title, "combine with the two-row blocking of that kernel to halve store traffic")
    assert not is_repeated(other, "q", [(TRIED, "p")])
    assert is_repeated(TRIED, "q", [(TRIED, "p")])


def test_compositions_are_compared_by_themselves() -> None:
    title, text = "Combine buffer, prefetch (on streaming)", "keeps the row, reads ahead, and stores past the cache"
    tried = draft(title, text, ("buffer", "prefetch", "streaming"))
    assert not is_repeated(draft(title, text, ("buffer", "streaming")), "p", [(tried, "p")])
    assert not is_repeated(draft(title, text, ()), "p", [(tried, "p")])
    assert is_repeated(draft("Another title", "and other words", tried.composition), "q", [(tried, "p")])


def test_a_sentence_that_names_a_composition_is_none() -> None:
    text = "keeps the row, reads ahead, and stores past the cache. Composition: {}."
    tried = draft("Combine buffer, prefetch", text.format("buffer, prefetch"), ("buffer", "prefetch"))
    assert is_repeated(draft("Combine buffer, prefetch", text.format("all")), "p", [(tried, "p")])


def tried(number: int, outcome: IdeaOutcome | None) -> TriedIdea:
    return TriedIdea(
        id=f"r{number}i0",
        title=TRIED.title,
        mechanism=TRIED.mechanism,
        category=TRIED.category,
        parent_id=None,
        best_candidate_id=None,
        best_speedup=None,
        outcome=outcome,
    )


FAILED = IdeaOutcome.IMPLEMENTATION_FAILED


@pytest.mark.parametrize("outcome", [IdeaOutcome.IMPROVED, IdeaOutcome.REFUTED, None])
def test_idea_that_was_judged_is_refused_when_it_comes_again(outcome: IdeaOutcome | None) -> None:
    assert is_refused(TRIED, [OTHER, tried(1, outcome)])
    assert tries_left(tried(1, outcome), [tried(1, outcome)]) == 0


def test_idea_whose_implementations_failed_may_be_tried_again_up_to_its_limit() -> None:
    for number in range(1, MOST_TRIES):
        failed = [OTHER, *(tried(n, FAILED) for n in range(number))]
        assert not is_refused(TRIED, failed)
        assert tries_left(failed[-1], failed) == MOST_TRIES - number
    exhausted = [tried(n, FAILED) for n in range(MOST_TRIES)]
    assert is_refused(TRIED, exhausted)
    assert tries_left(exhausted[0], exhausted) == 0


def test_failed_idea_whose_second_try_was_judged_is_closed() -> None:
    both = [tried(1, FAILED), tried(2, IdeaOutcome.REFUTED)]
    assert is_refused(TRIED, both)
    assert tries_left(both[0], both) == 0


def test_try_on_another_parent_does_not_count() -> None:
    elsewhere = dataclasses.replace(
        tried(1, IdeaOutcome.REFUTED), parent_id="q", mechanism="of another kernel entirely"
    )
    assert not is_refused(TRIED, [elsewhere])
