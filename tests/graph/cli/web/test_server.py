"""`ridgeline show RUN --web`: what is served while the archive changes, and to whom."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from tests.checkpoints.conftest import fill, make_candidate, make_ok
from tests.checkpoints.report.reading import read_page
from tests.graph.cli.command_line import assert_one_line, ridgeline

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import INTERRUPTED, lock_run
from ridgeline.graph.cli.web import server as web_server
from ridgeline.graph.cli.web.pages import REST, RunPages
from ridgeline.graph.cli.web.server import WebServer


class Clock:
    """Goes on by itself by a second each time that it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    with Archive.open(tmp_path / "run" / "archive.sqlite") as archive:
        fill(archive)
        archive.save_run(RunRecord(state="running", settings={"rounds": 6}))
    return tmp_path / "run"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(run_dir: Path, clock: Clock) -> Iterator[httpx.Client]:
    with WebServer(RunPages(run_dir, clock=clock), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with httpx.Client(base_url=server.url, trust_env=False) as client:
                yield client
        finally:
            server.shutdown()
            thread.join()


def test_the_page_is_the_report_with_a_script_of_the_server_alone(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    page = read_page(answer.text)
    assert [script.attributes.get("src") for script in page.find("script")] == ["live.js"]
    assert page.find("html")[0].attributes["data-version"] == client.get("/status").json()["version"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe-inline" not in answer.headers["content-security-policy"].partition("script-src")[2]
    assert client.get("/live.js").headers["content-type"].startswith("text/javascript")


def test_what_is_stored_while_it_is_served_is_shown_next(client: httpx.Client, run_dir: Path, clock: Clock) -> None:
    before, seen = client.get("/").text, client.get("/status").json()
    assert "r9i1v0a0" not in before and seen["state"] == INTERRUPTED and (seen["round"], seen["rounds"]) == (4, 6)
    assert client.get("/").text == before
    with lock_run(run_dir), Archive.open(run_dir) as archive:
        archive.add_candidate(make_candidate("r9i1v0a0", round=9))
        clock.now += 10 * REST
        during = client.get("/status").json()
        assert during["version"] != seen["version"]
        assert (during["round"], during["unjudged"], during["state"]) == (9, 1, "running")
        page = client.get("/").text
        assert "r9i1v0a0" in page and "1 kernel written and not judged yet" in " ".join(page.split())
        archive.add_evaluation(make_ok("r9i1v0a0", 5.0))
        clock.now += 10 * REST
        assert client.get("/status").json()["unjudged"] == 0
    clock.now += 10 * REST
    assert client.get("/status").json()["state"] == "interrupted, resumable"
    page = client.get("/").text
    assert "interrupted, resumable" in page and "<h2>Now</h2>" not in page, (
        "nothing goes on in a search that was killed"
    )


def test_a_page_stands_for_ten_times_as_long_as_it_took(client: httpx.Client, run_dir: Path, clock: Clock) -> None:
    first = client.get("/status").json()  # took one second of this clock
    with Archive.open(run_dir) as archive:
        archive.add_candidate(make_candidate("r9i1v0a0", round=9))
    assert client.get("/status").json() == first
    clock.now += REST
    assert client.get("/status").json() != first


def test_a_file_that_goes_while_it_is_looked_at_is_no_mistake(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exists, stat = Path.exists, Path.stat

    def gone(path: Path, **options: bool) -> os.stat_result:
        if path.name.endswith("-wal"):  # another process's search has just closed its archive
            raise FileNotFoundError(path)
        return stat(path, **options)

    monkeypatch.setattr(Path, "exists", lambda path: path.name.endswith("-wal") or exists(path))
    monkeypatch.setattr(Path, "stat", gone)
    assert RunPages(run_dir).shown()


def test_connections_that_send_nothing_keep_nobody_out(client: httpx.Client) -> None:
    place = ("127.0.0.1", client.base_url.port)
    most = web_server.MOST_CONNECTIONS
    silent = [socket.create_connection(place) for _ in range(3 * most)]
    try:
        for each in silent[::2]:
            with suppress(ConnectionError):  # it may have made room already
                each.sendall(b"GET / HTTP/1.1\r\nHost: 127.")
        assert client.get("/status", timeout=20).status_code == 200
        deadline = time.monotonic() + 20
        while (threads := threading.active_count()) > most + 20 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert threads <= most + 20
        assert client.get("/", timeout=20).status_code == 200
    finally:
        for each in silent:
            each.close()


def test_a_request_that_comes_byte_by_byte_is_ended(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "LONGEST_WAIT_S", 0.5)
    with WebServer(RunPages(run_dir), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with socket.create_connection(("127.0.0.1", server.server_port), timeout=0.05) as slow:
                slow.sendall(b"GET / HTTP/1.1\r\n")
                began = time.monotonic()
                assert sends_until_ended(slow) and time.monotonic() - began < 20
        finally:
            server.shutdown()
            thread.join()


def sends_until_ended(slow: socket.socket) -> bool:
    """Send a byte of a header every now and then until the server ends the connection; say whether it did."""
    for _ in range(400):
        try:
            slow.sendall(b"X")
            if slow.recv(100) == b"":
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost:x", "", "[::1", "169.254.0.1"])
def test_a_host_of_another_name_is_refused(client: httpx.Client, host: str) -> None:
    for path in ("/", "/status", "/live.js"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert "quickstart" not in answer.text


def test_names_of_this_machine_are_served_also_through_a_tunnel_s_port(client: httpx.Client) -> None:
    port = client.base_url.port
    for host in (
        f"localhost:{port}",
        f"127.0.0.1:{port}",
        f"LOCALHOST:{port}",
        f"[::1]:{port}",
        "localhost",
        "localhost:9",
    ):
        assert client.get("/status", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_it_is_read_only(client: httpx.Client, method: str) -> None:
    answer = client.request(method, "/", content=b"x" * 100_000 if method != "OPTIONS" else None)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_has_the_headers_alone(client: httpx.Client) -> None:
    answer = client.head("/")
    assert answer.content == b""
    assert int(answer.headers["content-length"]) == len(client.get("/").content)


@pytest.mark.parametrize(
    "path", ["/archive.sqlite", "/../archive.sqlite", "/%2e%2e/run/archive.sqlite", "//etc/passwd"]
)
def test_no_file_is_served(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_an_archive_that_is_gone_is_told_in_a_line(client: httpx.Client, run_dir: Path, clock: Clock) -> None:
    for file in run_dir.glob("archive.sqlite*"):
        file.unlink()
    clock.now += 10 * REST
    answer = client.get("/")
    assert answer.status_code == 503
    assert answer.text.count("\n") == 1 and "no such" in answer.text


def test_no_request_at_all_is_answered_in_text(client: httpx.Client) -> None:
    with socket.create_connection((str(client.base_url.host), client.base_url.port or 0), timeout=10) as raw:
        raw.sendall(b"<script>alert(1)</script>\r\n\r\n")
        answer = raw.makefile("rb").read()
    assert b"text/html" not in answer
    assert client.get("/status").status_code == 200


HEARD = """import signal, sys
from ridgeline.graph.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores interrupts
sys.exit(main())
"""


def test_the_command_tells_its_address_and_ends_when_it_is_told_to(run_dir: Path) -> None:
    command = [sys.executable, "-c", HEARD, "show", str(run_dir), "--web"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        assert process.stdout is not None
        with process.stdout as told:
            line = told.readline()
            found = re.match(r"http://127\.0\.0\.1:\d+/ ", line)
            assert found, line
            status = httpx.get(f"{found[0].strip()}status", trust_env=False)
            assert json.loads(status.content)["problem"] == "quickstart"
            process.send_signal(number)
            assert process.wait(timeout=60) == 0
            assert told.read() == ""


def test_words_that_do_not_go_with_it_are_refused_in_a_line(run_dir: Path, client: httpx.Client) -> None:
    for words in (
        ["show", "--web"],
        ["show", str(run_dir), "--port", "8000"],
        ["show", str(run_dir), "--web", "--json"],
        ["show", str(run_dir), "--web", "--port", "70000"],
        ["show", str(run_dir), "--web", "--port", str(client.base_url.port)],
    ):
        assert_one_line(ridgeline(*words))
