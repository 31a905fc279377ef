"""What the models are told before they propose ideas, and what becomes of ideas that cannot be used."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.graph import memory_engine
from tests.graph.conftest import Search
from tests.graph.memory_engine import DESCRIPTION
from tests.graph.scripted_model import ScriptedModel, distinct_ideas

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest
from ridgeline.graph.search.ranking.elites import read_elite
from ridgeline.tools.errors import ModelError, OutOfBudget
from ridgeline.tools.records.results import Profile, StageTime


async def test_malformed_ideas_get_one_repair_request_and_then_the_search_stalls(search: Search) -> None:
    search.model = ScriptedModel(ideas=lambda request: "I have many ideas!")
    output = await search.run(search.context())
    assert (output["outcome"], output["round"]) == ("no_gain" if not output["certified"] else "stalled", 0)
    assert len(search.model.proposals) == 2
    assert "no JSON object" in search.model.proposals[1].unreadable


async def test_a_search_that_goes_on_has_no_reason_to_have_ended(search: Search) -> None:
    reasons: list[str | None] = []

    def ideas(request: IdeationRequest) -> dict[str, Any]:
        reasons.append(search.archive.run().stop_reason)
        return distinct_ideas(request)

    search.archive.save_run(RunRecord(stop_reason="the budget of 5 tokens is spent"))  # of an earlier session
    search.model = ScriptedModel(ideas=ideas)
    await search.run(search.context(rounds=1, ideas=1, implementations=1))
    assert reasons == [""]
    assert search.archive.run().stop_reason == "1 round done"


async def test_duplicates_are_refused_and_asked_for_once_more(search: Search) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        fresh = distinct_ideas(request)
        if request.round == 2 and not request.refused:
            first = request.tried[0]
            fresh["ideas"][0] |= {"title": first.title, "mechanism": first.mechanism, "parent_id": first.parent_id}
        return fresh

    search.model = ScriptedModel(ideas=ideas)
    await search.run(search.context(rounds=2, ideas=2, implementations=1))
    assert [len(p.refused) for p in search.model.proposals] == [0, 0, 1]
    assert len(search.archive.ideas(2)) == 2


async def test_composition_of_an_idea_is_stored_and_told_to_the_model_that_stated_it(search: Search) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        return {"ideas": [idea | {"composition": ["prefetch"]} for idea in distinct_ideas(request)["ideas"]]}

    offline, other = ScriptedModel("offline", ideas=ideas), ScriptedModel("other", ideas=ideas)
    await search.run(search.context(offline, other))
    stored = {(idea.model, idea.composition) for idea in search.archive.ideas()}
    assert stored == {("offline", ("prefetch",)), ("other", None)}
    assert {request.idea.composition for request in [*offline.writes, *other.writes]} == {("prefetch",), None}
    assert ("prefetch",) in {idea.composition for idea in offline.proposals[-1].tried}


async def test_duplicate_under_an_invented_parent_is_refused(search: Search) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        fresh = distinct_ideas(request)["ideas"]
        if request.refused:
            return {"ideas": [fresh[0]]}
        words = {"mechanism": "something else entirely is told of it here", "parent_id": "an invented one"}
        return {"ideas": [fresh[1] | {"parent_id": None}, fresh[1] | words]}

    search.model = ScriptedModel(ideas=ideas)
    await search.run(search.context(rounds=1, ideas=2, implementations=1))
    assert [len(p.refused) for p in search.model.proposals] == [0, 1]
    assert len({idea.title for idea in search.archive.ideas(1)}) == 2


@pytest.mark.parametrize("error", [ModelUnavailable("no answer: 503"), ModelError("the key was refused")])
async def test_unanswered_request_for_more_ideas_leaves_the_accepted_ones(search: Search, error: Exception) -> None:
    def ideas(request: IdeationRequest) -> Any:
        fresh = distinct_ideas(request)["ideas"]
        return error if request.refused else {"ideas": [fresh[0], fresh[0]]}

    search.model = ScriptedModel(ideas=ideas)
    output = await search.run(search.context(rounds=1, ideas=2, implementations=1))
    assert (output["outcome"], len(search.archive.ideas(1))) == ("finished", 1)
    assert str(error) in " ".join(event["message"] for event in search.events_named("warning"))


def new_ideas(request: IdeationRequest) -> dict[str, Any]:
    """Return ideas that share no word with those of another request of the round."""
    return distinct_ideas(dataclasses.replace(request, round=request.rng_seed % 100_003))


async def test_model_that_does_not_cover_the_problem_is_dropped_and_the_others_take_its_share(search: Search) -> None:
    narrow = ScriptedModel("narrow", ideas=lambda r: ModelError("toy: not covered"), kernel=lambda r: ModelError("no"))
    search.model = ScriptedModel(ideas=new_ideas)
    await search.run(search.context(narrow, search.model, rounds=2, ideas=3, implementations=2))
    assert [len(search.archive.ideas(n)) for n in (1, 2)] == [3, 3]
    assert {idea.model for idea in search.archive.ideas()} == {"scripted"}
    assert len(narrow.proposals) == 1 and not narrow.writes
    assert "goes on without it" in search.events_named("warning")[0]["message"]


async def test_model_that_can_never_answer_is_dropped_beside_one_that_the_budget_ended(search: Search) -> None:
    narrow = ScriptedModel("narrow", ideas=lambda r: ModelError("toy: not covered"), kernel=lambda r: ModelError("no"))
    search.model = ScriptedModel(ideas=lambda r: OutOfBudget("no tokens are left"))
    context = search.context(narrow, search.model, rounds=1, ideas=3)
    await search.run(context)
    assert context.models.names == ["scripted"]
    assert any("goes on without it" in event["message"] for event in search.events_named("warning"))


async def test_search_whose_models_all_refuse_ends_with_the_refusal(search: Search) -> None:
    refusing = [ScriptedModel(name, ideas=lambda r: ModelError("not covered")) for name in ("a", "b")]
    with pytest.raises(ModelError, match="not covered"):
        await search.run(search.context(*refusing))


async def test_ideation_sees_results_failures_and_diagnosed_elites(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        broken = request.idea.title.startswith("golf")
        return {"source": f"// {request.idea.title}{' fails verify' if broken else ''}\n// speed 1.7\n"}

    search.model = ScriptedModel(kernel=kernel)
    await search.run(search.context(rounds=2, implementations=1, repairs=0))
    second = search.model.proposals[1]
    by_id = {idea.id: idea for idea in second.tried}
    assert by_id["r1i0"].best_speedup == 1.7
    assert by_id["r1i1"].best_speedup is None and "row 3 differs" in by_id["r1i1"].failure
    assert second.elites[0].candidate_id == "r1i0v0a0"
    assert "memory-bound" in second.elites[0].diagnosis


async def test_an_elite_s_largest_stage_is_that_of_its_profile_and_is_not_stored_with_the_request(
    search: Search,
) -> None:
    await search.run(search.context(rounds=1))
    evaluation = search.archive.own_evaluation("r1i0v0a0")
    assert evaluation is not None
    profile = Profile.from_json(search.archive.find("profiles", evaluation.key) or {})
    stages = (StageTime(name="load", ms=1.0, share=0.4), StageTime(name="store", ms=1.5, share=0.6))
    told = dataclasses.replace(profile, stages=stages, paragraph="Its stages: load 99% (1 ms).")
    search.archive.save("profiles", evaluation.key, "r1i0v0a0", told)
    elite = await read_elite(search.archive, "r1i0v0a0")
    assert elite is not None and (elite.diagnosis, elite.largest_stage) == (told.paragraph, "store")
    assert "largest_stage" not in elite.to_json() and "diagnosis" in elite.to_json()


async def test_user_ideas_come_first_and_once(search: Search) -> None:
    context = search.context(rounds=2, implementations=1)
    context.problem = context.problem.model_copy(update={"ideas": ["keep the row in registers"]})
    await search.run(context)
    models = [(idea.id, idea.model) for idea in search.archive.ideas()]
    assert models == [("r1i0", "user"), ("r1i1", "scripted"), ("r2i0", "scripted"), ("r2i1", "scripted")]
    assert search.archive.idea("r1i0").parent_id == "seed-naive"


async def test_revision_is_one_lineage_without_idea_memory_at_an_equal_budget(search: Search) -> None:
    await search.run(search.context(rounds=2, ideas=2, implementations=2, strategy="revision"))
    assert len(search.model.writes) == 8
    assert all(not p.tried and len(p.elites) <= 1 and p.count == 1 for p in search.model.proposals)


async def test_models_share_the_work_by_a_seeded_bandit(search: Search) -> None:
    good, bad = ScriptedModel("good"), ScriptedModel("bad", kernel=lambda r: {"source": f"// {r} fails verify"})
    await search.run(search.context(good, bad, rounds=4, ideas=3, implementations=2, repairs=0))
    assert good.proposals and bad.proposals
    assert len(good.writes) > len(bad.writes) > 0


async def test_plans_of_an_idea_go_to_its_implementations(search: Search) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        plans = ["by rows", "by columns"]
        return {"ideas": [idea | {"plans": plans} for idea in distinct_ideas(request)["ideas"]]}

    search.model = ScriptedModel(ideas=ideas)
    await search.run(search.context(rounds=1, ideas=1, implementations=3))
    assert search.model.proposals[0].implementations == 3
    assert search.archive.ideas()[0].plans == ("by rows", "by columns")
    assert {request.variation: request.plan for request in search.model.writes} == {
        0: "by rows",
        1: "by columns",
        2: "",
    }


async def test_an_idea_that_the_offline_model_cannot_carry_out_is_not_tried_and_told_once(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = {**DESCRIPTION.reference_graph, "mutations": ["x"]}
    monkeypatch.setattr(memory_engine, "DESCRIPTION", dataclasses.replace(DESCRIPTION, reference_graph=graph))
    context = search.context(ScriptedModel("offline"), rounds=2, implementations=1)
    context.problem = context.problem.model_copy(update={"ideas": ["x y z of a kind"]})
    await search.run(context)
    assert {(idea.id, idea.model) for idea in search.archive.ideas()} == {
        (f"r{round_}i{n}", "offline") for round_ in (1, 2) for n in (0, 1)
    }
    told = [event["message"] for event in search.events_named("warning") if "not tried" in event["message"]]
    assert len(told) == 1 and told[0].startswith("the idea 'x y z of a kind' is not tried: the offline model")
