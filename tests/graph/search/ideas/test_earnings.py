"""What models earn: authors by their ideas, writers by their branches, each for what it cost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.nodes.test_ideate import new_ideas
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.models.pool import ModelPool, Outcome
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest
from ridgeline.graph.search.ideas.earnings import author_outcomes, writer_outcomes


def pool(*names: str) -> ModelPool:
    return ModelPool([ScriptedModel(name) for name in names])


def outcomes(model: str, reward: float, usd: float | None, times: int = 10) -> list[Outcome]:
    return [Outcome(model=model, reward=reward, usd=usd)] * times


def share(name: str, found: list[Outcome]) -> int:
    return pool("cheap", "dear").assign(40, found, 7).count(name)


def test_of_two_models_that_gain_alike_the_cheaper_one_gets_more() -> None:
    known = outcomes("cheap", 0.7, 0.01) + outcomes("dear", 0.7, 1.0)
    unknown = outcomes("cheap", 0.7, 0.01) + outcomes("dear", 0.7, None)
    assert share("cheap", known) > 28
    assert 15 <= share("cheap", unknown) <= 25, "an unknown price decides nothing"


def test_a_free_model_that_only_ties_does_not_starve_one_that_doubles() -> None:
    assert share("dear", outcomes("cheap", 0.5, 0.0) + outcomes("dear", 1.0, 1.0)) >= 15
    assert share("dear", outcomes("cheap", 0.9, 0.0) + outcomes("dear", 1.0, 1.0)) < 20


async def test_an_idea_is_its_author_s_and_a_branch_its_writer_s_with_what_their_calls_cost(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        return {"source": f"// {request.idea.title} {request.variation}\n// fails verify"}

    thinker = ScriptedModel("thinker", ideas=new_ideas)
    clumsy = ScriptedModel("clumsy", ideas=new_ideas, kernel=kernel)
    await search.run(search.context(thinker, clumsy, rounds=1, ideas=2, implementations=2, repairs=1))
    ideas = {idea.id: idea.model for idea in search.archive.ideas()}
    authors, writers = author_outcomes(search.archive, 2), writer_outcomes(search.archive, 2)
    assert [outcome.model for outcome in authors] == list(ideas.values())
    assert {outcome.model for outcome in authors} == {"thinker", "clumsy"}
    assert len(writers) == 4
    for outcome in writers:
        calls, gains = (1, outcome.reward > 0) if outcome.model == "thinker" else (2, outcome.reward == 0)
        assert gains and outcome.usd == pytest.approx(0.001 * calls), "a repair is paid by the branch"
    assert all(outcome.usd == pytest.approx(0.001) for outcome in authors)
    written = {c.id: c.model for c in search.archive.candidates() if c.idea_id}
    for outcome, (idea_id, _) in zip(authors, ideas.items(), strict=True):
        is_written_well = any(model == "thinker" for id_, model in written.items() if id_.startswith(idea_id))
        assert (outcome.reward > 0) is is_written_well, "an idea earns what its best writer made of it"


async def test_a_replay_s_call_that_went_elsewhere_is_paid_by_the_author_that_it_stands_for(search: Search) -> None:
    await search.run(search.context(rounds=1, ideas=1, implementations=1))
    search.archive.save_run(RunRecord(models=(search.model.name,)))
    before = author_outcomes(search.archive, 2)
    with search.archive.database.write() as rows:
        rows.execute("UPDATE model_calls SET model = 'openai:o3?batch'")
    assert author_outcomes(search.archive, 2) == before
    assert before[0].usd == pytest.approx(0.001)


async def test_a_round_that_is_under_way_changes_no_earnings(search: Search) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        return new_ideas(request)

    search.model = ScriptedModel(ideas=ideas)
    await search.run(search.context(rounds=2, ideas=2, implementations=1))
    first = author_outcomes(search.archive, 2), writer_outcomes(search.archive, 2)
    assert len(first[0]) == len(first[1]) == 2
    assert (author_outcomes(search.archive, 1), writer_outcomes(search.archive, 1)) == ([], [])
    again = author_outcomes(search.archive, 3), writer_outcomes(search.archive, 3)
    assert (again[0][:2], again[1][:2]) == first


async def test_an_unknown_price_is_none_and_not_nothing(search: Search) -> None:
    await search.run(search.context(rounds=1, ideas=1, implementations=1))
    journal = Journal(search.archive)
    with search.archive.database.write() as rows:
        rows.execute("UPDATE model_calls SET reply = json_set(reply, '$.usd', NULL)")
    assert journal.totals().unpriced == 2
    assert [o.usd for o in (*author_outcomes(search.archive, 2), *writer_outcomes(search.archive, 2))] == [None, None]
