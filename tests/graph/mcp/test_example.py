"""The agent of examples/mcp_agent, over the engine of memory and for real."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.graph.mcp.scenario import ROOT, toy
from tests.live_processes import processes_naming

AGENT: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "mcp_agent" / "agent.py"))


@pytest.mark.thorough
@pytest.mark.long
async def test_the_agent_gets_a_kernel_that_a_real_search_alone_could_ship(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    ended = await AGENT["drive"](toy(tmp_path), tmp_path, ("-m", "tests.graph.mcp.memory_server"))
    assert "its build's flags were not kept" in ended, "the engine of memory builds nothing"
    assert calls_in(capsys.readouterr().out).count("answer") == 2
    assert not processes_naming(str(tmp_path / "runs"))


def calls_in(transcript: str) -> list[str]:
    return [line.split()[1] for line in transcript.splitlines() if line.startswith("> ")]


@pytest.mark.slow
@pytest.mark.sandboxed
@pytest.mark.timing
async def test_the_agent_ships_a_kernel_that_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await AGENT["drive"]("quickstart", tmp_path) == ""
    calls = calls_in(capsys.readouterr().out)
    assert calls[0] == "start_search" and calls[-1] == "ship" and calls.count("answer") == 2
    assert "// unrolled" in (tmp_path / "package" / "quickstart_kernel" / "kernel.cpp").read_text()
    assert not processes_naming(str(tmp_path))
