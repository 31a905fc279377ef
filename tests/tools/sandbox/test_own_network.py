"""Sockets between the processes of one confined command: they reach each other, and nobody outside."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tools.sandbox.talking import REACH, TALK, reached, was_hit

from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, Tier, claim_workdir

pytestmark = pytest.mark.timeout(60)

SOURCE = Path(__file__).with_name("swapping.cpp")


# With a device the opens of files are handed to the guard too.
with_and_without_devices = pytest.mark.parametrize("devices", [(), ("/dev/null",)], ids=["plain", "devices"])


@with_and_without_devices
@pytest.mark.parametrize("name", ["path:socket", "path:./socket", "abstract:name", "tcp:127.0.0.1", "tcp:0.0.0.0"])
def test_two_processes_of_a_command_talk(
    talkative: Sandbox, python: Callable[..., Confined], name: str, devices: tuple[str, ...]
) -> None:
    ended, printed = talkative.run(replace(python(TALK, name), devices=devices))
    assert ended.is_success and printed == "talked\n", printed


def test_a_path_below_the_working_folder_may_be_named_in_full(
    talkative: Sandbox, python: Callable[..., Confined], workdir: Path
) -> None:
    (workdir / "deep").mkdir()
    claim_workdir(workdir)
    ended, printed = talkative.run(python(TALK, f"path:{workdir}/deep/socket"))
    assert ended.is_success and printed == "talked\n", printed


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_no_port_of_the_machine_is_reached(talkative: Sandbox, python: Callable[..., Confined], kind: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        if kind == "tcp":
            listener.listen()
        assert not reached(talkative, python(REACH, f"{kind}:{listener.getsockname()[1]}"), listener)


@pytest.mark.parametrize("kind", ["path", "link", "folder", "abstract"])
@pytest.mark.parametrize(
    "type_", [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET], ids=["stream", "datagram", "packet"]
)
def test_no_unix_socket_outside_is_reached(
    talkative: Sandbox,
    python: Callable[..., Confined],
    workdir: Path,
    open_path: Path,
    kind: str,
    type_: socket.SocketKind,
) -> None:
    outside = open_path / "socket"
    (workdir / "link").symlink_to(outside)
    (workdir / "folder").symlink_to(open_path)
    ways = {"path": [outside, workdir / os.path.relpath(outside, workdir)], "link": ["link", workdir / "link"]}
    names = ways.get(kind, ["folder/socket", workdir / "folder" / "socket"])
    with socket.socket(socket.AF_UNIX, type_) as listener:
        if kind == "abstract":
            listener.bind("")  # a name that the kernel draws
            words = [f"abstract:{listener.getsockname()[1:].decode()}"]
        else:
            listener.bind(str(outside))
            outside.chmod(0o777)
            words = [f"path:{name}" for name in names]
        if type_ != socket.SOCK_DGRAM:
            listener.listen()
        assert not reached(talkative, python(REACH, *words), listener)


def test_two_commands_have_names_of_their_own(talkative: Sandbox, python: Callable[..., Confined]) -> None:
    serve = (
        "import socket, sys; server = socket.socket(socket.AF_UNIX); server.bind('\\0shared'); server.listen();"
        "print('ready', flush=True); sys.stdin.readline(); server.settimeout(0.1); server.accept(); print('hit')"
    )
    with talkative.start(python(serve), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin and server.stdout and server.stdout.readline() == b"ready\n"
        _, printed = talkative.run(python(REACH, "abstract:shared"))
        assert printed == "tried\n"
        server.stdin.write(b"\n")
        server.stdin.flush()
        assert b"hit" not in server.stdout.read()


def test_sockets_listen_on_the_loopback_alone(talkative: Sandbox, python: Callable[..., Confined]) -> None:
    if talkative.tier is not Tier.LANDLOCK:
        pytest.skip("tier A has no other interface")
    program = (
        "import socket\n"
        "for bound in (True, False):\n"
        "    server = socket.socket()\n"
        "    if bound: server.bind(('', 0))\n"
        "    server.listen()\n"
        "    print(server.getsockname()[0])\n"
    )
    assert talkative.run(python(program))[1] == "127.0.0.1\n127.0.0.1\n"


def test_a_port_that_a_command_gave_up_is_not_another_s_while_it_runs(
    talkative: Sandbox, python: Callable[..., Confined]
) -> None:
    program = (
        "import socket, sys; server = socket.create_server(('127.0.0.1', 0)); port = server.getsockname()[1];"
        "server.shutdown(socket.SHUT_RD); server.close(); print(port, flush=True); sys.stdin.readline();"
        "client = socket.socket(); client.settimeout(1); print(client.connect_ex(('127.0.0.1', port)))"
    )
    with talkative.start(python(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        port = int(process.stdout.readline())
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                listener.listen()
            except OSError:
                assert talkative.tier is Tier.LANDLOCK  # taken to the end
            else:
                process.stdin.write(b"\n")
                process.stdin.flush()
                process.stdout.readline()
                assert not was_hit(listener)


def test_a_connection_that_has_to_wait_holds_up_nobody_else(
    talkative: Sandbox, python: Callable[..., Confined]
) -> None:
    program = """
import socket, threading, time
full = socket.socket(socket.AF_UNIX); full.bind("\\0full"); full.listen(0)
def call(): socket.socket(socket.AF_UNIX).connect("\\0full")
threads = [threading.Thread(target=call) for _ in range(4)]
for thread in threads: thread.start()
time.sleep(0.2)
assert any(thread.is_alive() for thread in threads)
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname(), timeout=5)
for _ in threads: full.accept()
for thread in threads: thread.join()
print("all")
"""
    ended, printed = talkative.run(python(program))
    assert ended.is_success and printed == "all\n", printed


def test_an_address_that_changes_while_it_is_used_never_gets_through(
    talkative: Sandbox, python: Callable[..., Confined], workdir: Path, tmp_path: Path
) -> None:
    built = claim_workdir(tmp_path / "built")
    command = ("g++", "-std=c++17", "-O1", "-pthread", str(SOURCE), "-o", str(built / "swapping"))
    ended, printed = talkative.run(Confined(command=command, workdir=built, readable=(SOURCE,), allow_processes=True))
    assert ended.is_success, printed
    (built / "swapping").chmod(0o755)
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        swapping = (str(built / "swapping"), str(listener.getsockname()[1]))
        ended, printed = talkative.run(replace(python(""), command=swapping, readable=(built,)))
        assert ended.is_success, printed
        through, refused = (int(word) for word in printed.split())
        assert through > 20 and refused > 20, printed  # the control: both addresses were seen
        assert not was_hit(listener)
