"""What a search leaves out: each part named in `search.without`, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.graph.conftest import Search, write_problem
from tests.graph.requests_made import ELITE, kernel
from tests.graph.scripted_model import ScriptedModel, distinct_ideas

from ridgeline.checkpoints.result import build_result
from ridgeline.graph.models.requests import BuildingBlock, IdeationRequest, TriedIdea
from ridgeline.graph.search.shape.ablation import Ablation
from ridgeline.graph.search.shape.plan import make_plan
from ridgeline.problems.spec import SearchSettings
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.vocabulary import Origin


def recombines(request: IdeationRequest) -> dict[str, Any]:
    """Return ideas that name a second elite, where there is one."""
    answer = distinct_ideas(request)
    for idea in answer["ideas"]:
        idea["second_parent_id"] = request.elites[1].candidate_id if len(request.elites) > 1 else None
    return answer


def repeats(request: IdeationRequest) -> dict[str, Any]:
    """Return the same idea again and again."""
    idea = {
        "title": "same thing",
        "mechanism": "the same mechanism",
        "category": "memory_access",
        "predicted_gain": 1.1,
    }
    return {"ideas": [idea] * request.count}


async def asked(search: Search, *without: str, ideas: Any = recombines) -> ScriptedModel:
    """Return the model of a search of two rounds without these parts."""
    model = ScriptedModel(ideas=ideas)
    await search.run(search.context(model, without=list(without)))
    return model


async def test_search_tells_of_everything_by_default(search: Search) -> None:
    model = await asked(search)
    last = model.proposals[-1]
    assert last.tried
    assert all(elite.diagnosis for elite in last.elites)
    assert any(write.second_parent for write in model.writes)


async def test_search_without_memory_tells_of_no_tried_idea_and_still_refuses_repeats(search: Search) -> None:
    model = await asked(search, "memory", ideas=repeats)
    assert all(request.tried == () for request in model.proposals)
    assert any(request.refused for request in model.proposals)
    assert {idea.round for idea in search.archive.ideas()} == {1}


async def test_search_without_novelty_takes_repeats(search: Search) -> None:
    model = await asked(search, "novelty", ideas=repeats)
    assert not any(request.refused for request in model.proposals)
    assert [idea.title for idea in search.archive.ideas()] == ["same thing"] * 4
    assert model.proposals[-1].tried


async def test_search_without_diagnosis_profiles_nothing_and_tells_of_no_limit(search: Search) -> None:
    model = await asked(search, "diagnosis")
    shown = [elite for request in model.proposals for elite in request.elites]
    shown += [write.parent for write in model.writes if write.parent]
    assert shown
    assert {elite.diagnosis for elite in shown} == {""}
    elite = replace(ELITE, diagnosis="Its stages: load 90% (1 ms).", largest_stage="load")
    request = Ablation(without=frozenset({"diagnosis"})).of_kernel(kernel(parent=elite))
    assert request.parent == replace(elite, diagnosis="", largest_stage="")
    assert [key for key, _ in search.archive.records("profiles") if ":" not in key] == []


async def test_search_without_recombination_starts_no_idea_from_two_kernels(search: Search) -> None:
    model = await asked(search, "recombination")
    assert [write.second_parent for write in model.writes] == [None] * len(model.writes)
    assert {idea.second_parent_id for idea in search.archive.ideas()} == {None}


async def test_search_without_tuning_measures_no_tuned_point(search: Search) -> None:
    def tunable(request: Any) -> dict[str, Any]:
        return {"source": f"#define N 1 // tune: N = 1 | 2\n// {request.idea.title}{request.variation}\n// speed 1.5\n"}

    await search.run(search.context(ScriptedModel(kernel=tunable), tune_trials=4, rounds=1, without=["tuning"]))
    assert search.archive.candidates(origin=Origin.TUNE) == []
    await search.run(search.context(ScriptedModel(kernel=tunable), tune_trials=4, rounds=1))
    assert search.archive.candidates(origin=Origin.TUNE) != []
    for strategy in ("branch", "revision"):
        settings = SearchSettings(strategy=strategy, tune_trials=8, without=["tuning"])  # type: ignore[arg-type]
        assert make_plan(settings).trials(3) == 0
        assert make_plan(settings.model_copy(update={"without": []})).trials_per_round > 0


async def test_search_without_blocks_shows_no_kernel_of_another_operator(search: Search) -> None:
    await search.run(context := search.context())
    block = BuildingBlock(name="product", words="fast", language="cpp", source="void run();")
    request = IdeationRequest(
        subject=context.subject,
        baselines=await context.baselines(),
        round=1,
        count=1,
        rng_seed=0,
        blocks=(block,),
        tried=(
            TriedIdea.from_json(
                {"id": "r1i0", "title": "t", "mechanism": "m", "category": "memory_access", "parent_id": None}
                | {"best_candidate_id": None, "best_speedup": None, "before": "memory-bound", "after": "at the floor"}
            ),
        ),
    )
    assert Ablation().of_ideas(request) == request
    assert Ablation(without=frozenset(["blocks"])).of_ideas(request).blocks == ()
    told = Ablation(without=frozenset(["diagnosis"])).of_ideas(request)
    assert (told.blocks, told.tried[0].before, told.tried[0].after) == ((block,), "", "")


def test_the_parts_that_a_strategy_is_without_are_left_out_as_named_ones_are() -> None:
    settings = SearchSettings(strategy="revision", without=["tuning"])
    assert Ablation.of(settings).without == {"memory", "novelty", "recombination", "tuning"}
    assert Ablation.of(settings.model_copy(update={"strategy": "branch"})).without == {"tuning"}


def test_unknown_part_is_one_line_that_names_the_near_one(tmp_path: Any) -> None:
    with pytest.raises(ProblemError, match=r"search\.without: must be one of memory, .*; did you mean memory\?"):
        write_problem(tmp_path, search={"without": ["memry"]})


async def test_result_says_what_was_left_out(search: Search) -> None:
    from ridgeline.checkpoints.run_record import RunRecord

    search.archive.save_run(RunRecord(settings={"without": ["memory", "tuning"]}))
    assert json.loads(json.dumps(build_result(search.archive)))["without"] == ["memory", "tuning"]
