"""The four steps as tools, opened for an agent that writes kernels itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from tests.graph.library.agents.conftest import Bench
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_agent import ScriptedAgent, tool_messages

from ridgeline import InputError, open_toolbox
from ridgeline.checkpoints.archive import Archive
from ridgeline.tools.records.vocabulary import Interface

SOURCE = "// speed 2.0\n"


async def test_an_agent_takes_its_kernel_through_the_steps(bench: Bench) -> None:
    async with open_toolbox(bench.problem) as tools:
        assert [tool.name for tool in tools] == [
            f"{step}_kernel" for step in ("compile", "verify", "benchmark", "profile")
        ]
        compiled = json.loads(await tools[0].ainvoke({"source": SOURCE}))
        given = {"candidate_id": compiled["candidate_id"]}
        calls = [(tool.name, given) for tool in tools[1:]]
        state = await create_agent(ScriptedAgent(calls=calls), tools).ainvoke({"messages": [("user", "go")]})
    verified, timed, profiled = (json.loads(str(message.content)) for message in tool_messages(state))
    assert (verified["status"], timed["speedup"], profiled["bound"]) == ("ok", 2.0, "memory")


async def test_what_an_archive_holds_is_not_measured_again(bench: Bench) -> None:
    for _ in range(2):
        async with open_toolbox(bench.path, archive="kernels.sqlite") as tools:
            name = json.loads(await tools[0].ainvoke({"source": SOURCE}))["candidate_id"]
            assert json.loads(await tools[2].ainvoke({"candidate_id": name}))["speedup"] == 2.0
    assert bench.engine.counts[f"BenchmarkTask:{name}"] == 1
    with Archive.open(bench.folder / "kernels.sqlite", create=False) as archive:
        assert archive.candidate(name).interface is Interface.C


async def test_a_failure_of_the_machine_comes_back_to_the_agent(bench: Bench) -> None:
    async with open_toolbox(bench.problem) as tools:
        agent = create_agent(ScriptedAgent(calls=[("compile_kernel", {"source": "// crashes CompileTask"})]), tools)
        [message] = tool_messages(await agent.ainvoke({"messages": [("user", "go")]}))
    assert (message.status, message.content) == ("error", "the judge died")


async def test_an_engine_of_the_host_is_taken_and_a_mistake_is_told(bench: Bench) -> None:
    engine = MemoryEngine()
    async with open_toolbox(bench.problem, engine=engine) as tools:
        await tools[0].ainvoke({"source": SOURCE})
    assert engine.counts["DescribeTask"] == 1 and not bench.engine.counts
    with pytest.raises(InputError, match="archive: must be a path"):
        async with open_toolbox(bench.problem, archive=Path):  # type: ignore[arg-type]
            pass
    with pytest.raises(InputError, match="did you mean softmax"):
        async with open_toolbox("sofmax"):
            pass


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "candidate_id: is missing; add it"),
        ({"candidate_id": None}, "candidate_id: must be text, got None"),
        ({"candidate_id": "\ud83d"}, "candidate_id: half of a pair of unicode surrogates stands alone"),
    ],
)
async def test_what_a_tool_cannot_take_comes_back_in_one_line(bench: Bench, given: Any, says: str) -> None:
    async with open_toolbox(bench.problem) as tools:
        for tool in tools[1:]:
            assert (await tool.ainvoke(given)).startswith(says)
        of_source = {name.replace("candidate_id", "source"): value for name, value in given.items()}
        assert (await tools[0].ainvoke(of_source)).startswith(says.replace("candidate_id", "source"))
