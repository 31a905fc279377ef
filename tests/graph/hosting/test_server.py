"""LangGraph's own server, started as its users start it: it draws, runs, streams and resumes a search, and nothing blocks it.

A call that blocks the server's event loop is an error of the run there: the server watches for them itself.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from tests.environments import ROOT, child_environment
from tests.graph.hosting.test_node import asked
from tests.graph.session.test_interrupts import answer_of

from ridgeline import HostedSearch, open_run

pytestmark = pytest.mark.long

GRAPHS = """
from ridgeline import make_hosted_graph
from ridgeline.graph.models.mailbox.model import LaterModel
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

scripted = make_hosted_graph(engine=MemoryEngine(), models=[ScriptedModel()])
mailbox = make_hosted_graph(engine=MemoryEngine(), models=[LaterModel(name="mailbox")])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yield the URL and the folder of a server of the checkout's graph, and of two whose engine is in memory."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "graphs.py").write_text(GRAPHS)
    stated = json.loads((ROOT / "langgraph.json").read_text())
    stated["graphs"] |= {name: f"./graphs.py:{name}" for name in ("scripted", "mailbox")}
    (folder / "langgraph.json").write_text(json.dumps(stated))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = child_environment(ROOT, LANGGRAPH_CLI_NO_ANALYTICS="1", LANGSMITH_TRACING="false")
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            while not answers(f"http://127.0.0.1:{port}/ok"):
                assert process.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", folder
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture
async def client(server: tuple[str, Path]) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=server[0]) as client:
        yield client


async def test_the_checkouts_graph_is_drawn_with_its_form_and_leaves_no_folder(
    server: tuple[str, Path], client: LangGraphClient
) -> None:
    (assistant,) = await client.assistants.search(graph_id="ridgeline")
    graph = await client.assistants.get_graph(assistant["assistant_id"], xray=True)
    nodes = {node["id"] for node in graph["nodes"]}
    assert {f"search:{name}" for name in ("baseline", "ideate", "select", "tune", "certify")} <= nodes
    assert {f"search:implement:{name}" for name in ("write", "compile", "mend", "verify", "benchmark")} <= nodes
    schemas: Any = await client.assistants.get_schemas(assistant["assistant_id"])
    assert set(schemas["context_schema"]["properties"]) == set(HostedSearch.__annotations__)
    assert all(each["description"] for each in schemas["context_schema"]["properties"].values())
    thread = await client.threads.create()
    state: Any = await client.runs.wait(thread["thread_id"], "ridgeline", input={}, context={"problem": "sofmax"})
    assert (state["outcome"], state["error"]["code"]) == ("refused", "ProblemError")
    assert not (server[1] / "runs").exists()


async def test_a_search_with_the_forms_context_streams_its_events_and_ends_with_its_files(
    server: tuple[str, Path], client: LangGraphClient, tmp_path: Path
) -> None:
    context: Any = asked(tmp_path, runs_dir="runs", ideas=1)
    thread = await client.threads.create()
    events, state = [], {}
    async for part in client.runs.stream(
        thread["thread_id"], "scripted", input={}, context=context, stream_mode=["custom", "values"]
    ):
        assert part.event != "error", part.data
        if part.event == "custom":
            events.append(part.data["event"])
        elif part.event == "values":
            state = part.data
    assert {"baseline", "idea", "candidate_done", "certify", "stopped"} <= set(events)
    assert (state["outcome"], state["certified"], state["error"]) == ("finished", True, None)
    assert state["run_dir"] == str(server[1] / "runs" / f"toy.{thread['thread_id']}")
    assert open_run(state["run_dir"]).is_certified


@pytest.mark.thorough
async def test_a_mailboxs_request_waits_in_the_servers_thread_until_it_is_answered(
    client: LangGraphClient, tmp_path: Path
) -> None:
    context: Any = asked(tmp_path, ideas=1, implementations=2)
    id_ = (await client.threads.create())["thread_id"]
    await client.runs.wait(id_, "mailbox", input={}, context=context)
    answered = 0
    while asked_for := [each for task in (await client.threads.get_state(id_))["tasks"] for each in task["interrupts"]]:
        command: Any = {"resume": {each["id"]: answer_of(each["value"]) for each in asked_for}}
        state: Any = await client.runs.wait(id_, "mailbox", command=command, context=context)
        answered += len(asked_for)
        assert answered <= 3
    assert (state["outcome"], answered) == ("finished", 3)
