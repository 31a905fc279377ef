"""The pure decisions: the bandit, plans, prices, families."""

from __future__ import annotations

import dataclasses

import pytest
from tests.graph.memory_engine import DESCRIPTION
from tests.graph.requests_made import ELITE
from tests.graph.scripted_model import ScriptedModel

from ridgeline.graph.models.pool import ModelPool, Outcome, reward
from ridgeline.graph.models.prices import price_of
from ridgeline.graph.search.families import family_of
from ridgeline.graph.search.ideas.user_ideas import user_drafts
from ridgeline.graph.search.shape.plan import make_plan
from ridgeline.problems.model_calls import PriceSettings
from ridgeline.problems.spec import SearchSettings
from ridgeline.tools.errors import ModelError
from ridgeline.tools.records.vocabulary import Category


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
    with pytest.raises(ModelError, match="models='openai:o3'"):
        pool("a").model("openai:o3")


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


def test_an_idea_of_the_file_that_was_told_once_more_is_one_idea() -> None:
    drafts = user_drafts(["tile it", "prefetch the next row", " tile it\n"], (), 5, ())
    assert [draft.title for draft in drafts] == ["tile it", "prefetch the next row"]
