"""The arguments of a search mean the same wherever they are explained."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from mcp.shared.memory import create_connected_server_and_client_session as connected
from tests.graph.mcp.scenario import config_in

from ridgeline import asearch
from ridgeline.graph.hosting.settings import HostedSearch
from ridgeline.graph.mcp.server import RidgelineServer
from ridgeline.graph.session.argument_words import ARGUMENTS, LIMITS, MAX_ROUNDS, as_sentence
from ridgeline.problems.spec import Budget, SearchSettings


def explained() -> dict[str, str]:
    """Return the words of `asearch`'s docstring by its arguments' names."""
    section = inspect.cleandoc(asearch.__doc__ or "").partition("Args:\n")[2].partition("\nRaises:")[0]
    entries = re.findall(r"^    (\w+): (.+(?:\n        .+)*)", section, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in entries}


@pytest.fixture
async def tools(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Return the arguments of each MCP tool as a client is shown them, by its name."""
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        return {tool.name: tool.inputSchema for tool in (await client.list_tools()).tools}


def test_search_explains_each_of_its_arguments_in_the_shared_words() -> None:
    told = explained()
    assert list(told) == list(inspect.signature(asearch).parameters)
    for name, words in ARGUMENTS.items():
        assert told[name].startswith(words), name
    assert MAX_ROUNDS in told["rounds"]


async def test_each_argument_of_a_tool_is_explained_and_in_the_words_of_search(tools: dict[str, Any]) -> None:
    for tool, schema in tools.items():
        for name, argument in schema.get("properties", {}).items():
            assert argument.get("description"), f"{tool}: {name}"
    started = tools["start_search"]["properties"]
    shared = [name for name in started if name in ARGUMENTS]
    assert shared == ["device", "models", "rounds", "ideas", "implementations", "budget", "park"]
    for name in shared:
        assert started[name]["description"].startswith(ARGUMENTS[name])
    resumed = tools["resume_search"]["properties"]
    assert resumed["rounds"]["description"] == MAX_ROUNDS
    assert resumed["budget"]["description"].startswith(ARGUMENTS["budget"])
    limits = tools["start_search"]["$defs"]["Limits"]["properties"]
    assert {name: each["description"] for name, each in limits.items()} == LIMITS


def test_a_hosts_form_has_them_as_sentences() -> None:
    hints = get_type_hints(HostedSearch, include_extras=True)
    for name in ARGUMENTS.keys() & hints.keys():
        [field] = hints[name].__metadata__
        assert field.description.endswith(as_sentence(ARGUMENTS[name])[1:]), name
    assert as_sentence(ARGUMENTS["device"]) == "cpu, cuda or cuda:N."
    assert as_sentence(ARGUMENTS["ideas"]) == SearchSettings.model_fields["ideas"].description
    assert as_sentence(LIMITS["usd"]) == Budget.model_fields["usd"].description
    assert LIMITS["usd"] == "US dollars of model calls" and set(LIMITS) == set(Budget.model_fields)
