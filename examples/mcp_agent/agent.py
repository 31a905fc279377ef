"""An agent without a model: it drives a search over the Model Context Protocol and prints each call and its answer.

    python agent.py [PROBLEM] [FOLDER]

PROBLEM is a shipped problem's name or the absolute path of a problem.yaml, FOLDER gets the run and the package.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import get_default_environment, stdio_client

LONGEST_SHOWN = 300


class Refused(Exception):
    """The server, or the search, did not do what was asked."""


class Agent:
    """Calls tools and writes a transcript."""

    def __init__(self, client: ClientSession) -> None:
        """Take a session that is initialized."""
        self._client = client

    async def call(self, tool: str, **given: Any) -> dict[str, Any]:
        """Return a tool's answer; Refused where it is an error."""
        print(f"\n> {tool} {short(given)}", flush=True)
        done = await self._client.call_tool(tool, given, progress_callback=self._progress)
        if done.isError:
            raise Refused(done.content[0].text)
        answer = done.structuredContent or {}
        print(f"< {short(answer)}", flush=True)
        return answer

    async def _progress(self, passed_s: float, _: float | None, message: str | None) -> None:
        print(f"  … {passed_s:.0f} s: {message}", flush=True)

    async def follow(self, run: str, last: str) -> None:
        """Answer what the search asks until the request `last` waits."""
        status = await self.call("wait", run=run, seconds=60)
        while last not in status["waiting"]:
            if not status["is_running"]:
                raise Refused(f"the search ended: {status['says']}; {status['error'] or status['last_event']}")
            for each in status["waiting"]:
                asked = (await self.call("next_request", run=run, request_id=each))["request"]
                answered = await self.call("answer", run=run, request_id=each, **answer_to(asked))
                status = status | {"seen": answered["seen"], "waiting": answered["waiting"]}
            if last not in status["waiting"]:
                status = await self.call("wait", run=run, seconds=60, seen=status["seen"])


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    """Return what a model would reply: one idea on the kernel that is shown, or that kernel with a line of its own."""
    if request["purpose"] == "ideas":
        parent = re.search(r"### `(seed-\w+)`", request["prompt"])
        idea = {"title": "Unroll the fused pass", "mechanism": "more loads in flight", "category": "memory_access"}
        return {"reply": {"ideas": [idea | ({"parent_id": parent[1]} if parent else {})]}}
    shown = re.search(r"## Start from this kernel.*?```\w+\n(.*?)```", request["prompt"], re.DOTALL)
    if shown is None:
        raise Refused("the request shows no kernel to start from")
    return {"source": f"// unrolled\n{shown[1]}"}


def short(value: dict[str, Any]) -> str:
    """Return a value in one line that fits a screen or two."""
    text = json.dumps({name: each for name, each in value.items() if name != "schema"}, ensure_ascii=False)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({len(text)} characters)"


async def drive(problem: str, folder: Path, program: Sequence[str] = ("-m", "ridgeline", "mcp", "--runs-dir")) -> str:
    """Take a problem to a shipped kernel; return what went wrong, "" where nothing did."""
    words = [*program, str(folder / "runs")]
    server = StdioServerParameters(command=sys.executable, args=words, env=environment())
    async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        try:
            await search_and_ship(Agent(client), problem, folder / "package")
        except Refused as error:
            return str(error)
    return ""


async def search_and_ship(agent: Agent, problem: str, package: Path) -> None:
    """Begin a search, answer its first round, stop it in the second and ship the kernel that it found."""
    begun = await agent.call("start_search", problem=problem, models=["mailbox"], rounds=2, ideas=1, implementations=1)
    run = begun["run"]
    await agent.follow(run, "r2:ideate:0")
    await agent.call("best", run=run)
    await agent.call("stop", run=run)
    status = await agent.call("status", run=run)
    while status["is_running"]:
        status = await agent.call("wait", run=run, seconds=60, seen=status["seen"])
    # a search that goes on to its end certifies its winner, which takes some minutes more
    await agent.call("ship", run=run, out=str(package), uncertified=True)


def environment() -> dict[str, str]:
    """Return the server's environment: the SDK's own choice, and where this Python finds Ridgeline."""
    return get_default_environment() | {"PYTHONPATH": ":".join(path for path in sys.path if path)}


if __name__ == "__main__":
    named = sys.argv[1] if len(sys.argv) > 1 else "quickstart"
    place = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="ridgeline-agent-")).resolve()
    sys.exit(asyncio.run(drive(named, place)) or 0)
