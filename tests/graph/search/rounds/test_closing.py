"""What a round leaves behind when it ends."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.graph.search.context import SearchContext
from ridgeline.problems.spec import Budget
from ridgeline.tools.records.results import Timing


async def test_the_log_of_a_round_without_a_right_kernel_has_no_figure(
    search: Search, caplog: pytest.LogCaptureFixture
) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// fails verify\n"})
    context = search.context(rounds=1, ideas=1, implementations=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// fails verify\n")
    with caplog.at_level(logging.INFO, logger="ridgeline"):
        await search.run(context)
    (line, *_) = [message for message in caplog.messages if message.startswith("round 1: best ")]
    assert line.startswith("round 1: best none") and "0.000x" not in line


class Late(MemoryEngine):
    """Lets two hours of the search's clock pass at the timing of each kernel."""

    context: SearchContext

    def _benchmark(self, task: Any) -> Timing:
        self.context.working.started_s -= 7200
        return super()._benchmark(task)


@pytest.mark.parametrize(("rounds", "outcome"), [(1, "finished"), (2, "budget")])
async def test_a_budget_spent_in_the_last_round_ends_the_search_as_its_rounds_do(
    search: Search, rounds: int, outcome: str
) -> None:
    search.engine = engine = Late()
    budget = Budget(wall_s=3600)
    engine.context = search.context(rounds=rounds, ideas=1, implementations=1, budget=budget)
    output = await search.run(engine.context)
    assert (output["outcome"], output["round"]) == (outcome, 1)
    reason = search.archive.run().stop_reason or ""
    assert "all 3,600 s of the budget's wall_s are used" in reason
    assert reason.startswith("1 round done; ") is (outcome == "finished")
