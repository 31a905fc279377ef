"""What a round leaves behind when it ends."""

from __future__ import annotations

import logging

import pytest
from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel


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
