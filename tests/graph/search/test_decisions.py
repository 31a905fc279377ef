"""The pure decisions: novelty, the bandit, elites, plans, prices, families."""

from __future__ import annotations

import dataclasses

import pytest
from tests.candidates import candidate_of
from tests.graph.memory_engine import DESCRIPTION
from tests.graph.requests_made import ELITE
from tests.graph.scripted_model import ScriptedModel

from ridgeline.graph.models.pool import ModelPool, Outcome, reward
from ridgeline.graph.models.prices import price_of
from ridgeline.graph.models.requests import IdeaDraft
from ridgeline.graph.search.elites import Standing, choose_elites
from ridgeline.graph.search.families import family_of
from ridgeline.graph.search.novelty import is_repeated
from ridgeline.graph.search.plan import make_plan
from ridgeline.graph.search.user_ideas import user_drafts
from ridgeline.problems.spec import PriceSettings, SearchSettings
from ridgeline.tools.errors import ModelError
from ridgeline.tools.records.results import Evaluation, Timing
from ridgeline.tools.records.vocabulary import Category, Origin, Purpose, Status


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


def pool(*names: str) -> ModelPool:
    return ModelPool([ScriptedModel(name) for name in names])


def test_every_model_is_tried_before_any_is_preferred() -> None:
    assert set(pool("a", "b", "c").assign(3, [], 7)) == {"a", "b", "c"}


def test_bandit_prefers_the_model_that_gains_and_is_deterministic() -> None:
    outcomes = [Outcome(model="a", reward=0.9)] * 10 + [Outcome(model="b", reward=0.0)] * 10
    work = pool("a", "b").assign(20, outcomes, 7)
    assert work == pool("a", "b").assign(20, outcomes, 7)
    assert work.count("a") > 14


def test_dropped_model_gets_no_more_work_and_the_last_one_stays() -> None:
    models = pool("a", "b")
    assert models.drop("a") and models.drop("a")
    assert models.assign(3, [], 7) == ["b", "b", "b"]
    assert not models.drop("b") and not models.drop("unknown")
    assert models.place("b") == 1


def test_reward_measures_the_gain_over_the_best_before() -> None:
    assert reward(None, 1.0) == 0.0
    assert reward(1.5, 1.5) == 0.5
    assert reward(3.0, 1.5) == 1.0
    assert reward(2.0, 1.9) < reward(2.0, 1.0)


def test_resumed_search_without_its_model_says_which_to_pass() -> None:
    with pytest.raises(ModelError, match="--model openai:o3"):
        pool("a").model("openai:o3")


def standing(candidate_id: str, idea_id: str | None, speedup: float) -> Standing:
    candidate = candidate_of("", name=candidate_id, origin=Origin.MODEL, round=1, idea_id=idea_id)
    timing = Timing(status=Status.OK, median_ms=10 / speedup, speedup=speedup)
    return Standing(
        candidate=candidate,
        evaluation=Evaluation(
            key=candidate_id, candidate_id=candidate_id, purpose=Purpose.SEARCH, status=Status.OK, timing=timing
        ),
    )


def chosen(standings: list[Standing], count: int) -> list[str]:
    return [s.candidate.id for s in choose_elites(standings, count)]


def test_elites_are_of_different_ideas() -> None:
    standings = [standing("a0", "a", 2.0), standing("a1", "a", 1.99), standing("b0", "b", 1.9)]
    assert chosen(standings, 2) == ["a0", "b0"]


def test_second_kernel_of_an_idea_stays_when_it_is_far_ahead() -> None:
    standings = [standing("a0", "a", 3.0), standing("a1", "a", 2.9), standing("b0", "b", 1.5)]
    assert chosen(standings, 2) == ["a0", "a1"]


def test_places_left_over_go_to_the_next_fastest() -> None:
    standings = [standing("a0", "a", 2.0), standing("a1", "a", 1.99), standing("b0", "b", 1.9)]
    assert chosen(standings, 3) == ["a0", "a1", "b0"]


@pytest.mark.parametrize("trials", [0, 5, 24])
def test_revision_writes_and_tunes_as_much_as_branch(trials: int) -> None:
    settings = SearchSettings(rounds=3, ideas=4, implementations=2, tune_trials=trials)
    branch = make_plan(settings)
    revision = make_plan(settings.model_copy(update={"strategy": "revision"}))
    assert branch.rounds * branch.ideas * branch.implementations == revision.rounds
    total = sum(revision.trials(r) for r in range(1, revision.rounds + 1))
    assert total == sum(branch.trials(r) for r in range(1, branch.rounds + 1)) == 3 * trials


def test_prices_of_the_problem_come_before_the_list() -> None:
    listed, stated = price_of("openai:o3"), price_of("openai:o3", {"openai:o3": PriceSettings(input=1, output=2)})
    assert listed is not None and listed.usd(1_000_000, 0) == 2.0
    assert stated is not None and stated.usd(1_000_000, 1_000_000) == 3.0
    assert price_of("openai:o3@http://localhost:1/v1") is None


@pytest.mark.parametrize("model", ["openai:o3", "google_genai:gemini-2.5-pro", "anthropic:claude-sonnet-4-5"])
def test_list_prices_are_known_by_langchain_s_names(model: str) -> None:
    price = price_of(model)
    assert price is not None
    assert 0 < price.usd(1000, 0) < price.usd(0, 1000)


@pytest.mark.parametrize(
    "model", ["openai:nobody-knows", "openai:o3-of-my-own", "nobody:o3", "ollama:gpt-5", "openai:"]
)
def test_a_model_that_no_list_names_has_no_price(model: str) -> None:
    assert price_of(model) is None


@pytest.mark.parametrize(
    ("operation", "family"),
    [
        ("aten::_softmax", "rowwise"),
        ("aten.native_layer_norm.default", "rowwise"),
        ("aten::convolution", "convolution"),
        ("aten::addmm", "matmul"),
        ("aten::mul", "elementwise"),
    ],
)
def test_family_is_the_first_listed_that_the_graph_has(operation: str, family: str) -> None:
    graph = {"nodes": [{"op": "aten::add"}, {"op": operation}]}
    assert family_of(dataclasses.replace(DESCRIPTION, reference_graph=graph)) == family


def test_user_ideas_become_drafts_with_a_likely_category() -> None:
    drafts = user_drafts(["prefetch the next row", "short"], (), 5, (ELITE,))
    assert drafts[0].category is Category.LATENCY_HIDING
    assert drafts[1].mechanism.endswith("short")
    assert {d.parent_id for d in drafts} == {"seed-naive"}
