"""What ends the rounds of a search, and what of its elites is measured for the next."""

from __future__ import annotations

import pytest
from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.graph.search.elites import read_standings
from ridgeline.problems.spec import Budget


async def test_token_budget_stops_the_search(search: Search) -> None:
    output = await search.run(search.context(rounds=9, budget=Budget(tokens=100)))
    assert output["outcome"] == "budget"
    assert output["round"] < 9


async def test_kernel_within_the_margin_of_the_floor_ends_the_search(search: Search) -> None:
    search.engine = MemoryEngine(floor_ms=7.0)
    output = await search.run(search.context(rounds=9))
    assert output["outcome"] == "at_floor"
    assert output["round"] < 3


async def test_rounds_without_gain_stall_the_search(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 1.21\n"})
    output = await search.run(search.context(rounds=9, stall_rounds=2))
    assert (output["outcome"], output["round"]) == ("stalled", 2)


@pytest.mark.parametrize(("keyless", "is_profiled"), [("offline", True), ("scripted", False)])
async def test_elites_are_profiled_only_for_models_that_read_it(
    search: Search, monkeypatch: pytest.MonkeyPatch, keyless: str, is_profiled: bool
) -> None:
    monkeypatch.setattr("ridgeline.graph.search.context.OFFLINE", keyless)
    monkeypatch.setattr("ridgeline.graph.nodes.baseline.ensure_covered", lambda *_: None)
    await search.run(search.context(rounds=2, ideas=1, implementations=1))
    standing = read_standings(search.archive)[-1]
    assert (search.archive.find("profiles", standing.evaluation.key) is not None) == is_profiled
