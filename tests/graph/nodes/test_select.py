"""What ends the rounds of a search, and what of its elites is measured for the next."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel, own_structure

from ridgeline.graph.models.requests import COMPOSER, KernelRequest
from ridgeline.graph.models.search_model import AskedAtOnce
from ridgeline.graph.search.context import SearchContext
from ridgeline.graph.search.ranking.elites import read_standings
from ridgeline.problems.spec import Budget
from ridgeline.tools.engine import CompareTask
from ridgeline.tools.records.results import Comparison, FailedComparison, Timing
from ridgeline.tools.records.vocabulary import Purpose


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


@pytest.mark.parametrize("is_profiled", [True, False])
async def test_elites_are_profiled_only_for_models_that_read_it(
    search: Search, monkeypatch: pytest.MonkeyPatch, is_profiled: bool
) -> None:
    models = () if is_profiled else (AskedAtOnce(search.model, COMPOSER),)
    monkeypatch.setattr("ridgeline.graph.nodes.baseline.ensure_covered", lambda *_: None)
    await search.run(search.context(*models, rounds=2, ideas=1, implementations=1))
    standing = read_standings(search.archive)[-1]
    assert (search.archive.find("profiles", standing.evaluation.key) is not None) == is_profiled


class Lucky(MemoryEngine):
    """An engine whose timing of a kernel that says `lucky` is too fast; in alternating runs it is not."""

    def __init__(self) -> None:
        super().__init__()
        self.compared: list[tuple[Purpose, str, str]] = []

    def _benchmark(self, task: Any) -> Timing:
        timing = super()._benchmark(task)
        if "lucky" in task.candidate.source and task.purpose is Purpose.SEARCH:
            return Timing.from_json(timing.to_json() | {"speedup": 2.15, "speedup_ci95": [2.0, 2.3]})
        return timing

    def _compare(self, task: CompareTask) -> Comparison | FailedComparison:
        self.compared.append((task.purpose, task.first.id, task.second.id))
        return super()._compare(task)

    def in_search(self) -> list[tuple[str, str]]:
        return [(first, second) for purpose, first, second in self.compared if purpose is Purpose.SEARCH]


def lucky_kernel(request: KernelRequest) -> dict[str, Any]:
    speed = 2.0 if request.variation == 0 and request.parent and request.parent.candidate_id == "seed-naive" else 1.3
    luck = (
        "lucky"
        if request.variation == 1 and speed < 2.0 and request.parent and request.parent.speedup < 1.5
        else "plain"
    )
    return {"source": f"// {luck}\n// speed {speed}\n{own_structure(request.idea.title, request.variation)}"}


@pytest.mark.parametrize("trials", [0, 2])
async def test_winner_of_the_leaders_comparison_is_the_first_elite_of_the_next_round(
    search: Search, trials: int
) -> None:
    search.engine = engine = Lucky()
    search.model = ScriptedModel(kernel=lucky_kernel)
    await search.run(search.context(rounds=3, ideas=1, implementations=2, elites=1, tune_trials=trials))
    assert [r.elites[0].candidate_id for r in search.model.proposals] == ["seed-naive", "r1i0v0a0", "r1i0v0a0"]
    assert engine.in_search() == [("r1i0v1a0", "r1i0v0a0")]
    assert search.archive.ledger_totals()["wall_s"] > 0


async def test_kernels_that_their_timings_tell_apart_are_not_compared(search: Search) -> None:
    search.engine = engine = Lucky()
    kernel = {"source": "// speed {}\n"}
    search.model = ScriptedModel(kernel=lambda r: {n: s.format(1.5 + 0.5 * r.variation) for n, s in kernel.items()})
    await search.run(search.context(rounds=2, ideas=1, implementations=2))
    assert engine.in_search() == []


async def test_leaders_are_not_compared_for_the_offline_model(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgeline.graph.nodes.baseline.ensure_covered", lambda *_: None)
    search.engine = engine = Lucky()
    model = AskedAtOnce(ScriptedModel(kernel=lucky_kernel), COMPOSER)
    await search.run(search.context(model, rounds=2, ideas=1, implementations=2))
    assert len(search.archive.candidates(round=1)) == 2
    assert engine.in_search() == []


class Late(Lucky):
    """Lets hours of the search's clock pass at the timing of the lucky kernel."""

    context: SearchContext

    def _benchmark(self, task: Any) -> Timing:
        if "lucky" in task.candidate.source:
            self.context.working.started_s -= 7200
        return super()._benchmark(task)


async def test_leaders_are_not_compared_once_the_budget_is_spent(search: Search) -> None:
    search.engine = engine = Late()
    search.model = ScriptedModel(kernel=lucky_kernel)
    engine.context = search.context(rounds=2, ideas=1, implementations=2, budget=Budget(wall_s=3600))
    output = await search.run(engine.context)
    assert (output["outcome"], len(search.archive.ranking())) == ("budget", 3)
    assert engine.in_search() == []
