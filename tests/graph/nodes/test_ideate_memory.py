"""What a round's ideas know of each other, of those before them, and of two lineages that improved."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel, distinct_ideas, own_structure

from ridgeline.graph.models.requests import IdeationRequest, KernelRequest
from ridgeline.graph.models.showing.shortening import BRIEF_CHARS, in_brief
from ridgeline.tools.records.vocabulary import IdeaOutcome


def new_ideas(request: IdeationRequest) -> dict[str, Any]:
    """Return ideas that share no word with those of another request of the round."""
    return distinct_ideas(dataclasses.replace(request, round=request.rng_seed % 100_003))


async def test_idea_that_another_model_gave_is_refused_and_the_next_request_shows_it(search: Search) -> None:
    def again(request: IdeationRequest) -> dict[str, Any]:
        return new_ideas(request) if request.planned else distinct_ideas(request)

    first, second = ScriptedModel("a", ideas=again), ScriptedModel("b", ideas=again)
    await search.run(search.context(first, second, rounds=1, ideas=2, implementations=1))
    assert len(search.archive.ideas(1)) == 2
    (later,) = (request for request in [*first.proposals, *second.proposals] if request.planned)
    given = search.archive.ideas(1)[0]
    assert (later.planned, later.refused) == ((f"{given.title}: {given.mechanism}",), (given.title,))


def failing(request: KernelRequest) -> dict[str, Any]:
    return {"source": f"// fails verify {request.idea.title} {request.variation}\n"}


async def test_idea_whose_implementations_failed_is_tried_again_and_told_as_open(search: Search) -> None:
    same = {"title": "Keep the row in registers", "mechanism": "one pass in place of two", "category": "memory_access"}

    def ideas(request: IdeationRequest) -> dict[str, Any]:
        return {"ideas": [same] if request.refused else [same, same]}

    search.model = ScriptedModel(ideas=ideas, kernel=failing)
    await search.run(search.context(rounds=9, ideas=2, implementations=1, repairs=0))
    assert [idea.round for idea in search.archive.ideas()] == [1, 2, 3]
    told = [request.tried for request in search.model.proposals if request.tried and not request.refused]
    assert [[idea.tries_left for idea in tried] for tried in told] == [[2], [1, 1], [0, 0, 0]]
    assert {idea.outcome for idea in told[-1]} == {IdeaOutcome.IMPLEMENTATION_FAILED}
    assert told[0][0].ends == ("r1i0v0a0: wrong (wrong_values): row 3 differs",)


async def test_models_are_told_what_each_idea_gained_and_why(search: Search) -> None:
    await search.run(search.context(rounds=2, ideas=1, implementations=2))
    (idea,) = search.model.proposals[1].tried
    assert (idea.parent_id, idea.predicted_gain, idea.outcome) == ("seed-naive", 1.2, IdeaOutcome.IMPROVED)
    assert idea.gain is not None and abs(idea.gain - (1.2 * 1.1 + 0.01) / 1.2) < 1e-9
    assert [end.partition(":")[0] for end in idea.ends] == ["r1i0v0a0", "r1i0v1a0"]
    assert idea.before.startswith("memory-bound") and idea.after.startswith("memory-bound")


async def test_a_long_memory_is_told_as_a_digest_and_still_refuses_what_was_tried(search: Search) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        fresh = distinct_ideas(request)["ideas"]
        fresh = [idea | {"mechanism": " ".join(f"{idea['title']}{n}" for n in range(200))} for idea in fresh]
        if request.round == 5 and not request.refused:
            fresh[0] = first | {"title": "another title for it"}
        first.update(first or fresh[0])
        return {"ideas": fresh}

    first: dict[str, Any] = {}
    search.model = ScriptedModel(ideas=ideas, kernel=slower)
    await search.run(search.context(rounds=5, ideas=1, implementations=1))
    told = search.model.proposals[-1].tried
    assert told[0].mechanism == in_brief(first["mechanism"]) and len(told[-1].mechanism) > 2 * BRIEF_CHARS
    assert search.model.proposals[-1].refused == ("another title for it",)


def slower(request: KernelRequest) -> dict[str, Any]:
    return {"source": f"// speed 0.9\n{own_structure(request.idea.title)}"}


def from_scratch(request: IdeationRequest) -> dict[str, Any]:
    """Return ideas without a parent, so that each is a lineage of its own, but for the one that is asked to join two."""
    ideas = [idea | {"parent_id": None} for idea in new_ideas(request)["ideas"]]
    if request.recombine is not None:
        ideas[0] |= dict(zip(("parent_id", "second_parent_id"), request.recombine, strict=True))
    return {"ideas": ideas}


@pytest.mark.parametrize("names", [("a", "b"), ("offline", "b")])
async def test_one_idea_is_asked_to_join_two_lineages_that_improved_and_both_are_shown(
    search: Search, names: tuple[str, str]
) -> None:
    models = [ScriptedModel(name, ideas=from_scratch, kernel=alike) for name in names]
    await search.run(search.context(*models, rounds=3, ideas=2, implementations=1, elites=1))
    joining = [r for model in models for r in model.proposals if r.recombine is not None]
    assert [request.round for request in joining] == [2]
    assert not any(r.recombine for model in models if model.name == "offline" for r in model.proposals)
    assert set(joining[0].recombine or ()) == {"r1i0v0a0", "r1i1v0a0"}
    assert {elite.candidate_id for elite in joining[0].elites} == {"r1i0v0a0", "r1i1v0a0"}
    (joined,) = (idea for idea in search.archive.ideas(2) if idea.second_parent_id)
    assert {joined.parent_id, joined.second_parent_id} == {"r1i0v0a0", "r1i1v0a0"}


def alike(request: KernelRequest) -> dict[str, Any]:
    """Return a kernel that is faster than PyTorch, and slower than the two of the first round where it joins them."""
    speed = 1.4 if request.second_parent else 1.5
    return {"source": f"// speed {speed}\n{own_structure(request.idea.title)}"}


async def test_one_lineage_is_asked_to_recombine_nothing(search: Search) -> None:
    await search.run(search.context(rounds=3, ideas=2, implementations=1, strategy="revision"))
    assert all(request.recombine is None for request in search.model.proposals)


def tunable(request: KernelRequest) -> dict[str, Any]:
    """Return a kernel of its own structure whose implementations declare different names."""
    structure = own_structure(f"{request.idea.title}{request.variation}")
    name = f"BLOCK_{request.variation}"
    return {
        "source": f"#define {name} 1  // tune: {name} = 1 | 2 | 4\n// factor {name} 4 1.1\n// speed 1.5\n{structure}"
    }


async def test_models_are_told_the_sweep_of_each_kernel_with_that_kernel(search: Search) -> None:
    search.model = ScriptedModel(kernel=tunable)
    await search.run(search.context(rounds=2, ideas=1, implementations=2, tune_trials=6))
    elites = [elite for elite in search.model.proposals[1].elites if elite.idea_id]
    assert [elite.idea_id for elite in elites] == ["r1i0", "r1i0"]
    for elite in elites:
        variation = search.archive.candidate(elite.candidate_id).variation
        assert elite.sweep and all(row.startswith((f"BLOCK_{variation}=", "as written")) for row in elite.sweep)
    (idea,) = search.model.proposals[1].tried
    assert idea.sweep in [elite.sweep for elite in elites]
