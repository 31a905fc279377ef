"""Model calls through the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.models.asked import journalled
from tests.graph.requests_made import ideation
from tests.graph.scripted_model import ScriptedModel, distinct_ideas, faster_each_round

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.models.requests import COMPOSER, IdeationRequest, Traits, Usage
from ridgeline.graph.models.retry import first_line
from ridgeline.graph.models.search_model import AskedAtOnce
from ridgeline.tools.records.vocabulary import Origin


def first_fails(error: Exception) -> Any:
    """Return a kernel function whose first answer is an exception."""
    calls = []

    def kernel(request: Any) -> Any:
        calls.append(request)
        return error if len(calls) == 1 else faster_each_round(request)

    return kernel


@pytest.mark.parametrize("error", [ZeroDivisionError("in the client"), ValueError("no JSON"), AssertionError("parsed")])
async def test_any_exception_of_a_model_fails_one_branch_and_is_journaled(search: Search, error: Exception) -> None:
    search.model = ScriptedModel(kernel=first_fails(error))
    context = search.context(rounds=1)
    output = await search.run(context)
    assert output["outcome"] == "finished"
    assert context.journal.totals().in_flight == 0
    (failed,) = context.journal.calls("failed")
    assert type(error).__name__ in failed.error
    assert str(error) in failed.error
    assert sum(1 for c in search.archive.candidates(origin=Origin.MODEL) if not c.source) == 1


HALF = "\ud83d"
"""Of a pair of surrogates, as a server sends it in JSON that cuts a text off in the middle of a character."""


@pytest.mark.parametrize("answer", [f"```cpp\n// {HALF}\n// speed 2.0\n```", ModelUnavailable(f"refused {HALF}")])
async def test_half_a_pair_of_surrogates_ends_no_search(search: Search, answer: Any) -> None:
    calls = []

    def kernel(request: Any) -> Any:
        calls.append(request)
        return answer if len(calls) == 1 else faster_each_round(request)

    search.model = ScriptedModel(ideas=lambda request: f"{HALF} {json.dumps(distinct_ideas(request))}", kernel=kernel)
    output = await search.run(search.context(rounds=1))
    assert output["outcome"] == "finished"
    if isinstance(answer, str):
        assert any(c.source == "// ?\n// speed 2.0\n" for c in search.archive.candidates(origin=Origin.MODEL))


def test_a_clients_error_is_told_without_half_a_pair_of_surrogates() -> None:
    assert first_line(ValueError(f"no JSON: {HALF}")) == "no JSON: ?"


async def test_a_paid_call_without_a_reply_counts_for_the_budget(search: Search) -> None:
    unusable = ModelUnavailable("answered with nothing", Usage(input_tokens=1000, output_tokens=500, usd=0.25))
    search.model = ScriptedModel(kernel=first_fails(unusable))
    context = search.context(rounds=1, ideas=1, implementations=1, repairs=0)
    await search.run(context)
    totals = context.journal.totals()
    assert totals.failed == 1
    assert totals.usd == pytest.approx(0.25 + 0.001)
    assert totals.output_tokens == 500 + 5


async def test_reply_that_arrived_is_read_from_the_journal_by_models_that_know_nothing_of_the_search(
    tmp_path: Path,
) -> None:
    model, request = ScriptedModel(), ideation()
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        first = journalled(ModelPool([model]), Journal(archive))[0]
        drafts = await first.propose("r1:ideate:0", model.name, request)
        again = journalled(ModelPool([model]), Journal(archive))[0]
        assert await again.propose("r1:ideate:0", model.name, request) == drafts
    assert len(model.proposals) == 1


@pytest.mark.parametrize(("traits", "composition"), [(COMPOSER, ("prefetch",)), (Traits(), None)])
async def test_only_the_offline_model_states_compositions(
    tmp_path: Path, traits: Traits, composition: tuple[str, ...] | None
) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        return {"ideas": [idea | {"composition": ["prefetch"]} for idea in distinct_ideas(request)["ideas"]]}

    with Archive.open(tmp_path / "archive.sqlite") as archive:
        models = journalled(ModelPool([AskedAtOnce(ScriptedModel(ideas=ideas), traits)]), Journal(archive))[0]
        drafts = await models.propose("r1:ideate:0", "scripted", ideation())
    assert {draft.composition for draft in drafts} == {composition}
