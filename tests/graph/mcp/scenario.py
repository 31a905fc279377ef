"""What the tests of the server share: a server over the engine of memory, a client's calls, an agent that answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp import ClientSession
from tests.environments import ROOT, child_environment
from tests.graph.conftest import write_problem
from tests.graph.mailbox_agent import answer_of
from tests.graph.memory_engine import MemoryEngine

from ridgeline.graph.mcp.config import ServerConfig
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search

MEMORY = (sys.executable, "-m", "tests.graph.memory_ridgeline")
SETTINGS = {
    **dict.fromkeys(("rounds", "ideas", "implementations"), 1),
    **dict.fromkeys(("tune_trials", "repairs"), 0),
    **dict.fromkeys(("stall_rounds", "floor_margin")),
}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}

NO_MESSAGES: tuple[tuple[bytes, int | str | None, int], ...] = (
    (b"no JSON", None, -32700),
    (b'{"jsonrpc": "2.0", "id": 4, "method": "pi', None, -32700),
    (b'{"jsonrpc": "2.0", "id": 4, "method": "ping\xff"}', None, -32700),
    (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', None, -32700),
    (b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "ping"}', None, -32700),
    (b"[" * 100_000, None, -32700),
    (b"[]", None, -32600),
    (b"7", None, -32600),
    (b"{}", None, -32600),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, -32600),
    (b'{"jsonrpc": "1.0", "id": 4, "method": "ping"}', 4, -32600),
    (b'{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": 5}', "a", -32600),
    (b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"_": "\\ud800"}}', 4, -32600),
    (b'{"jsonrpc": "2.0", "id": "\\udc00", "method": "ping"}', None, -32600),
)
"""What a client sends that is no message, the id of its answer and the error's code."""


def environment() -> dict[str, str]:
    """Return what a process needs to find the tests beside the package."""
    return child_environment(ROOT, RIDGELINE_HOME="/nonexistent")


def config_in(folder: Path, **given: Any) -> ServerConfig:
    """Return a server's configuration with its runs in `folder/runs`."""
    return ServerConfig(runs_dir=folder / "runs", program=MEMORY, engine=given.pop("engine", MemoryEngine()), **given)


def toy(folder: Path) -> str:
    """Write a problem and return its path."""
    return str(write_problem(folder / "problem", search=SETTINGS).path)


async def parked(folder: Path, name: str = "parked") -> Path:
    """Return the folder of a search that is parked with one request for ideas."""
    problem = write_problem(folder / "problem", search=SETTINGS)
    request = SearchRequest(problem=problem, run_dir=folder / "runs" / name, models=("mailbox",), park=True)
    result = await run_search(request, engine=MemoryEngine())
    assert (result.state, result.waiting) == ("waiting", 1)
    return result.run_dir


async def ask(client: ClientSession, tool: str, progress: Any = None, **given: Any) -> dict[str, Any]:
    """Call a tool and return its answer."""
    done = await client.call_tool(tool, given, progress_callback=progress)
    assert not done.isError, done.content
    assert done.structuredContent is not None
    return done.structuredContent


async def refused(client: ClientSession, tool: str, **given: Any) -> str:
    """Call a tool that refuses, and return its one line."""
    done = await client.call_tool(tool, given)
    assert done.isError, done.structuredContent
    (content,) = done.content
    assert content.type == "text" and "\n" not in content.text and "Traceback" not in content.text
    return content.text


def text_of(path: str) -> str:
    """Return what a file holds that an answer names."""
    return Path(path).read_text()


async def answer_all(client: ClientSession, run: str, waiting: list[str]) -> None:
    """Answer these requests from their documents alone."""
    for each in waiting:
        asked = (await ask(client, "next_request", run=run, request_id=each))["request"]
        suffix, text = answer_of(text_of(asked["prompt_path"]))
        given = {"source": text} if suffix == "cpp" else {"text": text}
        assert (await ask(client, "answer", run=run, request_id=each, **given))["id"] == each


async def driven(
    client: ClientSession, run: str, until: Callable[[dict[str, Any]], bool], *, answers: bool = True
) -> dict[str, Any]:
    """Wait, and answer, until the status says so; return it."""
    status = await ask(client, "status", run=run)
    while not until(status):
        assert not status["error"], status
        if answers and status["waiting"]:
            await answer_all(client, run, status["waiting"])
        status = await ask(client, "wait", run=run, seconds=20, seen=status["seen"])
    return status


async def until(holds: Callable[[], bool]) -> None:
    """Return once this holds; the test's own limit of time ends it else."""
    while not holds():
        await asyncio.sleep(0.02)
