"""The server over HTTP: whom it lets in, and a client of the SDK."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from tests.environments import child_environment
from tests.graph.cli.command_line import LINE_OF
from tests.graph.mcp.scenario import HELLO, NO_MESSAGES, ask, config_in, parked

from ridgeline.graph.mcp import http as served
from ridgeline.graph.mcp.http import Address, TokenGate, app_of
from ridgeline.tools.errors import InputError

TOKEN = "a-token-of-this-test-alone"
ACCEPTED = {"Accept": "application/json, text/event-stream"}


@contextlib.asynccontextmanager
async def serving(folder: Path, **given: Any) -> AsyncIterator[str]:
    """Give the URL of a server on a free port of loopback."""
    settings = uvicorn.Config(
        app_of(config_in(folder), Address(**given)), port=0, log_config=None, lifespan="on", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(settings)
    with contextlib.ExitStack() as stack:
        stack.enter_context(settings_of_signals())
        running = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.should_exit = True
            await running


@contextlib.contextmanager
def settings_of_signals() -> Any:
    """Give a test's handlers of signals back, which uvicorn takes."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def test_a_client_on_loopback_drives_a_run(tmp_path: Path) -> None:
    run = await parked(tmp_path)
    async with (
        serving(tmp_path) as url,
        streamable_http_client(url) as (read, write, _),
        ClientSession(read, write) as client,
    ):
        await client.initialize()
        assert (await ask(client, "list_runs"))["runs"][0]["run"] == str(run)
        told: list[str] = []

        async def progress(_: float, __: float | None, message: str | None) -> None:
            told.append(str(message))

        seen = (await ask(client, "status", run="parked"))["seen"]
        await ask(client, "wait", progress, run="parked", seconds=1, seen=seen)
        assert told and "waiting for answers" in told[0]


async def test_a_client_with_the_token_is_let_in_and_no_other(tmp_path: Path) -> None:
    async with serving(tmp_path, token=TOKEN) as url:
        async with httpx.AsyncClient(headers=ACCEPTED) as http:
            for headers in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": f"Basic {TOKEN}"},
                {"Authorization": TOKEN},
                {"Authorization": f"Bearer {TOKEN[:-1]}"},
                {"Authorization": "Bearer"},
                {"Authorization": "Bearer caf\u00e9".encode("latin-1")},
            ):
                refusal = await http.post(url, json=HELLO, headers=headers)
                assert (refusal.status_code, refusal.headers["www-authenticate"]) == (401, "Bearer"), headers
            twice = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer other"), *ACCEPTED.items()]
            assert (await http.post(url, json=HELLO, headers=twice)).status_code == 401
        authorized = httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"})
        async with (
            authorized,
            streamable_http_client(url, http_client=authorized) as (read, write, _),
            ClientSession(read, write) as client,
        ):
            await client.initialize()
            assert (await ask(client, "list_runs"))["runs"] == []


async def test_a_page_of_another_host_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as url, httpx.AsyncClient(headers=ACCEPTED) as http:
        port = httpx.URL(url).port
        for headers, status in (
            ({"Host": f"evil.example:{port}"}, 421),
            ({"Host": f"127.0.0.1.evil.example:{port}"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": f"http://localhost:{port}"}, 200),
            ({}, 200),
        ):
            assert (await http.post(url, json=HELLO, headers=headers)).status_code == status, headers


async def test_what_is_no_message_gets_one_line_and_the_server_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(served, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(served, "_LONGEST_BODY_S", 0.2)

    async def endless() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(1)

    async def parts(size: int) -> AsyncIterator[bytes]:
        for _ in range(size >> 16):
            yield b"x" * (1 << 16)

    json_header = ACCEPTED | {"Content-Type": "application/json"}
    async with serving(tmp_path) as url, httpx.AsyncClient(headers=json_header) as http:
        for body, own, code in NO_MESSAGES:
            refused = await http.post(url, content=body)
            assert (refused.status_code, refused.text.count("\n")) == (400, 1), body
            assert (refused.json()["id"], refused.json()["error"]["code"]) == (own, code)
        for given, status in ((b"x" * (2 << 20), 413), (parts(2 << 20), 413), (endless(), 408)):
            refused = await http.post(url, content=given)
            assert (refused.status_code, refused.text.count("\n")) == (status, 1)
        assert (await http.post(url, json=HELLO)).status_code == 200
    assert not caplog.records


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append((one, other)))

    async def app(*_: Any) -> None:
        raise AssertionError("let in")

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [(b"Authorization", b"Bearer nearly")]}
    asyncio.run(TokenGate(app, TOKEN)(scope, app, send))  # type: ignore[arg-type]
    assert compared == [(b"nearly", TOKEN.encode())] and sent[0]["status"] == 401


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"host": "0.0.0.0"}, "RIDGELINE_MCP_TOKEN"),
        ({"host": "192.0.2.1"}, "could run code as you"),
        ({"host": "some.example"}, "could run code as you"),
        ({"host": "::"}, "RIDGELINE_MCP_TOKEN"),
        ({"host": "0.0.0.0", "token": TOKEN}, "--allow-host"),
        ({"names": ["gpu.example:8377"]}, "without a scheme or a port"),
        ({"names": ["https://gpu.example"]}, "without a scheme or a port"),
        ({"token": "short"}, "16 printable ASCII characters"),
        ({"token": "spaces and\ttabs too"}, "16 printable ASCII characters"),
    ],
)
def test_an_address_that_others_reach_needs_a_token_and_a_name(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Address(**given)


def test_hosts_by_which_clients_may_come() -> None:
    for host in ("127.0.0.1", "127.9.9.9", "localhost", "::1"):
        assert Address(host=host).is_loopback
    wildcard = Address(host="0.0.0.0", token=TOKEN, names=["gpu.example"])
    hosts = wildcard.security().allowed_hosts
    assert "gpu.example:*" in hosts and "localhost:*" in hosts and not any("0.0.0.0" in host for host in hosts)
    assert {"http://gpu.example:*", "https://gpu.example"} <= set(wildcard.security().allowed_origins)
    assert wildcard.security().enable_dns_rebinding_protection
    assert "[::2]:*" in Address(names=["::2"]).security().allowed_hosts
    assert wildcard.url(80) == "http://gpu.example:80/mcp" and Address(host="::1").url(8) == "http://[::1]:8/mcp"


@pytest.mark.parametrize(
    ("number", "ended"),
    [
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
    ],  # the server raises its own signals again
)
def test_the_command_serves_on_a_free_port_and_ends_at_a_signal(
    tmp_path: Path, number: signal.Signals, ended: int
) -> None:
    words = [*LINE_OF, "mcp", "--http", "--port", "0", "--runs-dir", str(tmp_path / "runs")]
    environment = child_environment(RIDGELINE_MCP_TOKEN=TOKEN)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None and process.stderr is not None
        url = process.stdout.readline().strip()
        try:
            assert httpx.post(url, json=HELLO, headers=ACCEPTED).status_code == 401
            authorized = ACCEPTED | {"Authorization": f"Bearer {TOKEN}"}
            assert httpx.post(url, json=HELLO, headers=authorized).status_code == 200
        finally:
            process.send_signal(number)
        assert process.wait(timeout=30) == ended
        assert "Traceback" not in process.stderr.read()
    assert sys.executable in words[0] and not (tmp_path / "runs").exists()
