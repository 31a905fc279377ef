"""Processes with their imports done that others begin as copies of: one of a kind for all workers of a run.

An original begins with the first request for a copy of it and ends with the run, whichever worker began it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

RUN = "RIDGELINE_TEST_RUN"
"""The folder of a run's originals."""
REQUEST_BYTES = 1 << 17
_MOST_DESCRIPTORS = 4
_HELD = "run"


def hold_originals() -> Callable[[], None]:
    """Begin a run, that of this process and those that it starts; returns what ends it, with every original."""
    folder = tempfile.TemporaryDirectory(prefix="ridgeline-originals-")
    held = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    held.bind(f"{folder.name}/{_HELD}")
    held.listen(64)  # none is accepted: an original sees the end of this process as that of its connection
    os.environ[RUN] = folder.name

    def end() -> None:
        held.close()
        folder.cleanup()

    return end


def connected(program: str, *words: str, key: str, environment: dict[str, str]) -> socket.socket:
    """Return a connection to the original with this program, words and key, each message on which is one request.

    It is begun with this environment where it is not there yet; requests wait until its imports are done.
    """
    folder = Path(os.environ[RUN])
    name = hashlib.sha256("\n".join((program, *words, key)).encode()).hexdigest()[:16]
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            connection.connect(str(folder / name))
            return connection
        (folder / name).unlink(missing_ok=True)  # of one that has died
        _begin(folder, name, [program, *words], environment)
        connection.connect(str(folder / name))
    return connection


def _begin(folder: Path, name: str, words: Sequence[str], environment: dict[str, str]) -> None:
    """Begin an original; what it writes is kept beside it: it outlives who reads the output of the one that began it."""
    program, *others = words
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, (folder / f"{name}.log").open("wb") as log:
        listener.bind(str(folder / name))
        listener.listen(64)
        command = [sys.executable, "-P", program, str(listener.fileno()), str(folder / _HELD), *others]
        begun = subprocess.Popen(
            command,
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )
        begun.returncode = 0  # the run's end is its own: nothing here waits for it


def copy_for_each_request(listener_fd: int, held: str) -> tuple[bytes, list[int]] | None:
    """Return, in each copy, what it is to be and its descriptors, and None in the original when the run has ended."""
    listener = socket.socket(fileno=listener_fd)
    run = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        run.connect(held)
    except (FileNotFoundError, ConnectionRefusedError):  # it ended meanwhile
        return None
    connections = {each.fileno(): each for each in (listener, run)}
    while True:
        for fd in _readable(connections):
            _reap()
            if fd == run.fileno():
                return None
            if fd == listener.fileno():
                worker, _ = listener.accept()
                connections[worker.fileno()] = worker
                continue
            request, fds = _received(connections[fd])
            if not request:
                connections.pop(fd).close()
            elif os.fork() == 0:
                for each in connections.values():
                    each.close()
                return request, fds
            for given in fds:
                os.close(given)


def _readable(connections: Iterable[int]) -> list[int]:
    poll = select.poll()
    for fd in connections:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll()]


def _received(connection: socket.socket) -> tuple[bytes, list[int]]:
    """Return a request and its descriptors, nothing where the worker has gone."""
    try:
        request, fds, _, _ = socket.recv_fds(connection, REQUEST_BYTES, _MOST_DESCRIPTORS)
    except ConnectionResetError:
        return b"", []
    return request, fds


def _reap() -> None:
    """Forget the keepers of copies that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
