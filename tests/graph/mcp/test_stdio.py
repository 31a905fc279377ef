"""The server on standard input and output, as clients start it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from tests.graph.cli.command_line import LINE_OF, ROOT, assert_one_line, ridgeline
from tests.graph.mcp.scenario import HELLO, NO_MESSAGES, environment, parked, toy

from ridgeline import __version__
from ridgeline.graph import cli
from ridgeline.graph.cli.commands.mcp import REQUIREMENT


def started(*words: str) -> subprocess.Popen[str]:
    """Start a server whose client this test is."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(words, text=True, env=environment(), cwd=ROOT, **pipes)


def said(server: subprocess.Popen[str], message: dict[str, Any]) -> dict[str, Any]:
    """Send a request and return the next line of the server."""
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()
    answer: dict[str, Any] = json.loads(server.stdout.readline())
    return answer


@pytest.mark.thorough
def test_nothing_but_the_protocol_is_on_standard_output(tmp_path: Path) -> None:
    problem = toy(tmp_path)
    with started(sys.executable, "-m", "tests.graph.mcp.memory_server", str(tmp_path / "runs")) as server:
        assert said(server, HELLO)["result"]["serverInfo"] == {"name": "ridgeline", "version": __version__}
        assert server.stdin is not None
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
        arguments = {"problem": problem, "source": "// speed 2\n//"}
        call = {"name": "evaluate_kernel", "arguments": arguments}
        verdict = said(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        assert verdict["result"]["structuredContent"]["speedup"] == 2.0
        assert "result" in said(server, {"jsonrpc": "2.0", "id": 3, "method": "ping"})
        out, err = server.communicate(timeout=60)
    assert (out, server.returncode) == ("", 0)
    assert "a library prints" in err and "a process prints" in err


def test_a_line_that_is_no_message_gets_an_error_of_json_rpc_and_ends_nothing(tmp_path: Path) -> None:
    with started(*LINE_OF, "mcp", "--runs-dir", str(tmp_path)) as server:
        said(server, HELLO)
        assert server.stdin is not None and server.stdout is not None
        for line, own, code in NO_MESSAGES:
            server.stdin.buffer.write(line + b"\n")
            server.stdin.flush()
            answer = server.stdout.readline()
            told = json.loads(answer)
            assert (told["id"], told["error"]["code"]) == (own, code), (line, answer)
            assert len(answer) < 300
        server.stdin.write("\n  \n")
        assert said(server, {"jsonrpc": "2.0", "id": "on", "method": "ping"})["id"] == "on"
        out, err = server.communicate(timeout=60)
    assert (out, err, server.returncode) == ("", "", 0)


def test_a_signal_ends_the_server_while_its_client_is_there(tmp_path: Path) -> None:
    with started(*LINE_OF, "mcp", "--runs-dir", str(tmp_path)) as server:
        said(server, HELLO)
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=30) == 128 + signal.SIGTERM
        assert server.stderr is not None and server.stderr.read() == ""


@pytest.mark.thorough
async def test_an_agent_of_langchain_has_the_tools(tmp_path: Path) -> None:
    run = await parked(tmp_path)
    words = {"command": sys.executable, "args": ["-m", "tests.graph.mcp.memory_server", str(tmp_path / "runs")]}
    connection: Any = {"transport": "stdio", "env": environment(), "cwd": str(ROOT), **words}
    async with MultiServerMCPClient({"ridgeline": connection}).session("ridgeline") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        listed = await tools["list_runs"].ainvoke({})
        assert str(run) in str(listed)
        asked = await tools["next_request"].ainvoke({"run": "parked"})
        assert "r1:ideate:0" in str(asked)
        taken = await tools["answer"].ainvoke(
            {
                "run": "parked",
                "request_id": "r1:ideate:0",
                "text": '{"ideas": [{"title": "a b", "mechanism": "keep each row in registers", "category": "memory_access"}]}',
            }
        )
        assert "resume_search" in str(taken)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--host", "0.0.0.0"), "--host needs --http"),
        (("--allow-host", "x"), "--allow-host needs --http"),
        (("--http", "--host", "0.0.0.0"), "RIDGELINE_MCP_TOKEN"),
        (("--http", "--token-file", "/nowhere"), "/nowhere"),
        (("--http", "--token-file", os.devnull), "is empty"),
        (("--http", "--host", "192.0.2.7"), "could run code as you"),
        (("--http", "--allow-host", "gpu.example:80"), "without a scheme or a port"),
        (("--port", "99999"), "--port"),
        (("--runs-dir", __file__), "is a file"),
    ],
)
def test_bad_words_get_one_line(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mcp", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


@pytest.mark.parametrize(("place", "says"), [("messages", "is a file"), (os.devnull, "is a device")])
def test_standard_input_that_is_no_pipe_gets_one_line(tmp_path: Path, place: str, says: str) -> None:
    (tmp_path / "messages").write_text(json.dumps(HELLO))
    with (tmp_path / place).open() as messages:
        done = subprocess.run(
            [*LINE_OF, "mcp"], stdin=messages, capture_output=True, text=True, env=environment(), timeout=60
        )
    assert_one_line(done, f"standard input {says}")


def test_a_line_that_is_too_long_ends_the_server_with_one_line() -> None:
    code = (
        "import sys; from ridgeline.graph.mcp import stdio; stdio.MOST_BYTES = 1 << 20; "
        "from ridgeline.graph.cli import main; sys.exit(main(['mcp']))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        words, input="x" * (3 << 20) + "\n", capture_output=True, text=True, env=environment(), timeout=60
    )
    assert_one_line(done, "a line of more than 1 MiB")


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from ridgeline.graph.cli import main; sys.exit(main(['mcp']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60)
    assert_one_line(done, f"{sys.executable} -m pip install '{REQUIREMENT}'")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert REQUIREMENT in extras["mcp"]


def test_the_help_loads_nothing_of_the_server() -> None:
    code = (
        "import sys; from ridgeline.graph.cli import main; main(['mcp', '--help'])\n"
        "print({'mcp', 'anyio', 'uvicorn', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60)
    assert done.stdout.splitlines()[-1] == "set()", done.stderr
    assert "--http" in ridgeline("mcp", "--help").stdout


def test_a_client_that_went_away_without_a_word_leaves_no_traceback(tmp_path: Path) -> None:
    with started(*LINE_OF, "mcp", "--runs-dir", str(tmp_path)) as server:
        said(server, HELLO)
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        server.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            for number in range(2, 5):
                server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}) + "\n")
                server.stdin.flush()
            server.stdin.close()
        assert server.wait(timeout=60) == 0
        assert server.stderr.read() == ""


def test_no_process_of_the_server_has_its_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RIDGELINE_MCP_TOKEN", "a-token-of-this-test-alone")
    assert cli.main(["mcp", "--http", "--host", "192.0.2.7"]) == 2  # an address of nobody's
    assert "name another --port" in capsys.readouterr().err
    assert "RIDGELINE_MCP_TOKEN" not in os.environ
