"""docs/agents.md names the tools and the commands that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.graph.mcp.scenario import ROOT

from ridgeline.graph.cli.arguments import make_parser
from ridgeline.graph.mcp.config import ServerConfig
from ridgeline.graph.mcp.tools import Tools

PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
COMMANDS = sorted(
    set(re.findall(r"`(ridgeline [a-z]+ [^`]*)`", PAGE)) | set(re.findall(r"^ridgeline [^#\n]*", PAGE, re.MULTILINE))
)


def test_the_page_names_every_tool_and_no_other() -> None:
    steps = PAGE.partition("| step | tools | commands |")[2].partition("\n\n")[0]
    named = {word for row in steps.splitlines() for word in re.findall(r"`(\w+)", (row.split("|") + [""] * 3)[2])}
    tools = {tool.__name__ for tool, _ in Tools(ServerConfig(runs_dir=Path("/runs"))).all()}
    assert named == tools - {"list_runs"} and "`list_runs`" in PAGE


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_is_one(command: str) -> None:
    make_parser().parse_args(shlex.split(command)[1:])


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) > 8
