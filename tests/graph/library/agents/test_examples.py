"""The examples of agents, run as they stand there, with the engine in memory."""

from __future__ import annotations

import importlib.util
import inspect
import json
from pathlib import Path

import pytest
from tests.graph.library.agents.conftest import Bench

EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.mark.parametrize("name", ["agent_tool", "sub_agent"])
async def test_an_example_ends_with_the_answer_of_its_search(
    bench: Bench, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / name / "main.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    running = module.main()
    if inspect.isawaitable(running):
        await running
    said = capsys.readouterr().out
    answer = json.loads(said[said.index("{") : said.rindex("}") + 1])
    assert (answer["problem"], answer["state"], answer["rounds"]) == ("quickstart", "finished", 1)
    assert said.endswith("is done.\n")
