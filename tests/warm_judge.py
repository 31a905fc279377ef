"""Judges that begin as copies of one process which has imported torch: what is left of a start is the problem's own load.

Run as a program, it is that process: `python -P tests/warm_judge.py FD`. A judge answers on the same socket, in the same
words and with the same limits and variables as one that is started by itself; it is a child of its keeper, which hands on
its id and how it ended. Tests of the command line, of a session and of the engine's process start theirs as users do.
"""

from __future__ import annotations

import array
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from unittest import mock

if TYPE_CHECKING:
    from ridgeline.tools.judge.process import JudgeProcess
    from ridgeline.tools.records.problem import Target

FIRST_FD = 3
"""A copy has its connection and its report of a hang from here on."""
OWN_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
"""Read when it is used; the other variables of a judge are those of the process that it is a copy of."""


class WarmProcess:
    """A judge, as `subprocess.Popen` would hold it."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self.returncode: int | None = None
        self.pid = int(_line(status))

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(int(_line(self._status)))
            self._status.close()
        return self.returncode

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class WarmJudges:
    """The processes that judges are copied from, one for each environment."""

    def __init__(self) -> None:
        self._originals: dict[str, tuple[socket.socket, subprocess.Popen[bytes]]] = {}
        self._lock = threading.Lock()  # a test may judge in two threads

    def start(self, fds: tuple[int, int, int], environment: dict[str, str]) -> WarmProcess:
        """Start a judge with its connection, its report of a hang and its log."""
        own = environment[OWN_VARIABLE].encode()
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            original = self._original(environment)
            descriptors = array.array("i", [*fds, theirs.fileno()])
            head = len(own).to_bytes(8, "big")
            original.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            original.sendall(own)
        return WarmProcess(ours)

    def _original(self, environment: dict[str, str]) -> socket.socket:
        key = json.dumps({name: environment[name] for name in sorted(environment) if name != OWN_VARIABLE})
        if key not in self._originals:
            ours, theirs = socket.socketpair()
            command = [sys.executable, "-P", __file__, str(theirs.fileno())]
            with theirs:
                process = subprocess.Popen(
                    command, env=environment, cwd="/", stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),)
                )
            self._originals[key] = ours, process
        return self._originals[key][0]

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Have every judge begin as a copy."""
        from ridgeline.tools.judge import process

        def start(judge: JudgeProcess, problem: Target, cache_dir: Path) -> WarmProcess:
            with judge._connection.theirs as theirs:
                fds = theirs.fileno(), judge._hang_report.fileno(), judge._log.fileno()
                return self.start(fds, process._environment(problem, cache_dir))

        with mock.patch.object(process.JudgeProcess, "_start", start):
            yield

    def close(self) -> None:
        for connection, process in self._originals.values():
            connection.close()
            process.wait()


def _line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        data = connection.recv(1)
        assert data, "the process that judges are copied from has ended"
        line += data
    return line


def _copy(own: bytes, fds: list[int]) -> None:
    """Be a judge with these descriptors and no others."""
    from ridgeline.tools.judge.worker import __main__ as worker

    connection, hang_report, log = (os.dup2(fd, 100 + i) for i, fd in enumerate(fds))
    os.dup2(0, 1)
    os.dup2(log, 2)
    os.dup2(connection, FIRST_FD)
    os.dup2(hang_report, FIRST_FD + 1)
    os.closerange(FIRST_FD + 2, 1024)
    os.environ[OWN_VARIABLE] = own.decode()
    sys.argv[1:] = [str(FIRST_FD), str(os.getppid()), str(FIRST_FD + 1)]
    worker.main()


def _keep(own: bytes, fds: list[int]) -> None:
    """Start the judge, say its id, and how it ended when it has."""
    status = socket.socket(fileno=fds.pop())
    pid = os.fork()
    if pid == 0:
        _end_after(partial(_copy, own, fds))
    for fd in fds:
        os.close(fd)
    status.sendall(b"%d\n" % pid)
    _, how = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # nobody waits for one that was left
        status.sendall(b"%d\n" % how)


def _end_after(act: Callable[[], None]) -> NoReturn:
    """Do it and end this process as the interpreter would, without what a copy has no right to clean up."""
    code = 1
    try:
        act()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  what ends a judge is for its log, whatever it is
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Start a copy for each request until the tests' process closes the connection."""
    import torch

    from ridgeline.tools.judge.worker import __main__  # noqa: F401  the import is the point
    from ridgeline.tools.judge.worker.graph_export import export_graph

    export_graph(torch.nn.ReLU(), [torch.ones(1)])  # imports 1200 modules more when it is first called
    gc.freeze()
    connection = socket.socket(fileno=int(sys.argv[1]))
    while True:
        head, fds, _, _ = socket.recv_fds(connection, 8, 4)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:  # keepers that have ended
                pass
        if not head:
            return
        size, own = int.from_bytes(head, "big"), b""
        while len(own) < size:
            own += connection.recv(size - len(own))
        if os.fork() == 0:
            connection.close()
            _end_after(partial(_keep, own, fds))
        for fd in fds:
            os.close(fd)


if __name__ == "__main__":
    main()
