"""Searches that a client begins: processes of their own, which outlive clients and servers."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.memory import create_connected_server_and_client_session as connected
from tests.graph.mcp.scenario import (
    ROOT,
    answer_all,
    ask,
    config_in,
    driven,
    environment,
    parked,
    refused,
    toy,
    until,
)
from tests.live_processes import processes_naming

from ridgeline.checkpoints.runs.folders import LOCK_NAME, is_locked, lock_run
from ridgeline.graph.mcp.server import RidgelineServer

pytestmark = pytest.mark.long


@contextlib.asynccontextmanager
async def over_stdio(folder: Path, script: str = "tests.graph.mcp.memory_server") -> AsyncIterator[ClientSession]:
    """Give a client of a server process on standard input and output."""
    words = StdioServerParameters(
        command=sys.executable, args=["-m", script, str(folder / "runs")], env=environment(), cwd=str(ROOT)
    )
    async with stdio_client(words) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        yield client


async def test_a_search_is_begun_answered_stopped_resumed_and_ends_certified(tmp_path: Path) -> None:
    said: list[str] = []

    async def progress(_: float, __: float | None, message: str | None) -> None:
        said.append(str(message))

    problem = toy(tmp_path)
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        begun = await ask(client, "start_search", problem=problem, models=["mailbox"], run="mine", device="cpu")
        run = Path(begun["run"])
        assert (run, begun["is_running"], begun["models"]) == (tmp_path / "runs" / "mine", True, ["mailbox"])
        assert os.getsid(int((run / LOCK_NAME).read_text())) != os.getsid(0), "no signal of a client reaches it"
        assert "in use by process" in await refused(client, "resume_search", run="mine")
        assert "holds a search already" in await refused(client, "start_search", problem=problem, run="mine")

        asked = await driven(client, "mine", lambda status: bool(status["waiting"]))
        assert asked["waiting"] == ["r1:ideate:0"]
        assert "resume_search" in (await ask(client, "stop", run="mine"))["says"]
        stopped = await driven(client, str(run), lambda status: not status["is_running"], answers=False)
        assert (stopped["state"], stopped["is_resumable"], stopped["error"]) == ("stopped", True, None)
        await answer_all(client, "mine", ["r1:ideate:0"])

    async with connected(RidgelineServer(config_in(tmp_path))) as client:  # another one knows it by its folder alone
        resumed = await ask(client, "resume_search", progress, run="mine")
        assert resumed["is_running"]
        over = await driven(client, "mine", lambda status: not status["is_running"])
        assert (over["state"], over["rounds_done"], over["candidates"], over["error"]) == ("finished", 1, 1, None)
        assert (await ask(client, "best", run="mine"))["best"]["certified"]
    await until(lambda: not processes_naming(str(run)))


@pytest.mark.thorough
async def test_a_search_outlives_its_server_that_is_killed(tmp_path: Path) -> None:
    problem = toy(tmp_path)
    with contextlib.suppress(BaseExceptionGroup, Exception):  # the server's end, as the SDK's client tells it
        async with over_stdio(tmp_path) as client:
            run = Path((await ask(client, "start_search", problem=problem, models=["mailbox"]))["run"])
            (server,) = [each for each in _children_of(os.getpid()) if str(tmp_path) in each[1]]
            os.kill(server[0], signal.SIGKILL)
            await until(lambda: not Path(f"/proc/{server[0]}").exists() or _is_zombie(server[0]))
    assert is_locked(run), "it searches on"
    async with over_stdio(tmp_path) as client:
        (entry,) = (await ask(client, "list_runs"))["runs"]
        assert (entry["run"], entry["state"]) == (str(run), "running")
        over = await driven(client, entry["name"], lambda status: not status["is_running"])
        assert over["state"] == "finished"


@pytest.mark.thorough
async def test_what_a_search_says_when_it_cannot_begin_is_the_answer(tmp_path: Path) -> None:
    problem = toy(tmp_path)
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        for given, says in (
            ({"models": ["openai:o3"]}, "OPENAI_API_KEY, or run with models='offline'"),
            ({"device": "tpu"}, "device 'tpu'"),
            ({"run": str(tmp_path / "problem")}, "a folder with other things in it"),
        ):
            assert says in await refused(client, "start_search", problem=problem, **given)
    assert not (tmp_path / "runs").exists()


@pytest.mark.thorough
async def test_a_search_that_is_refused_once_it_runs_keeps_its_reason(tmp_path: Path) -> None:
    problem = toy(tmp_path)
    with (tmp_path / "problem" / "reference.py").open("a") as reference:
        reference.write("# fails describe\n")
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        said = await client.call_tool("start_search", {"problem": problem, "run": "mine"})
        if said.isError:  # it was refused before start_search saw it begin
            assert "fails describe" in said.content[0].text  # type: ignore[union-attr]
        over = await ask(client, "status", run="mine")
        while over["is_running"]:
            over = await ask(client, "wait", run="mine", seconds=20, seen=over["seen"])
        assert (over["state"], over["is_resumable"]) == ("refused", False)
        assert "raised RuntimeError: fails describe" in over["error"]
        assert (await ask(client, "wait", run="mine", seconds=300))["error"] == over["error"], "it returns at once"
        assert over["error"] in await refused(client, "best", run="mine")
    assert not (tmp_path / "runs" / "mine").exists()


@pytest.mark.thorough
async def test_a_search_that_is_killed_is_told_so_with_its_processes_end(tmp_path: Path) -> None:
    problem = toy(tmp_path)
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        begun = await ask(client, "start_search", problem=problem, models=["mailbox"], run="mine")
        known = await driven(client, "mine", lambda status: bool(status["waiting"]))
        number = int((Path(begun["run"]) / LOCK_NAME).read_text())
        os.kill(number, signal.SIGKILL)
        killed = await ask(client, "wait", run="mine", seconds=60, seen=known["seen"])
        assert (killed["state"], killed["is_running"], killed["is_resumable"]) == ("interrupted", False, True)
        await until(lambda: not Path(f"/proc/{number}").exists())  # reaped
        told = await ask(client, "status", run="mine")
        assert "was ended by signal 9" in told["error"]
        with lock_run(Path(begun["run"])):  # as `ridgeline run --resume` in a shell does
            pass
        assert (await ask(client, "status", run="mine"))["error"] is None, "it speaks of a process before the last one"


async def test_a_search_that_parks_needs_no_process_until_it_is_answered(tmp_path: Path) -> None:
    await parked(tmp_path)
    async with connected(RidgelineServer(config_in(tmp_path))) as client:
        await answer_all(client, "parked", ["r1:ideate:0"])
        await ask(client, "resume_search", run="parked", park=True)
        waiting = await driven(client, "parked", lambda status: not status["is_running"], answers=False)
        assert (waiting["state"], waiting["waiting"], waiting["error"]) == ("waiting", ["r1i0v0a0:write"], None)


def _children_of(parent: int) -> list[tuple[int, str]]:
    """Return the processes of a parent, each with its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append((int(entry.name), (entry / "cmdline").read_bytes().decode(errors="replace")))
    return found


def _is_zombie(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
