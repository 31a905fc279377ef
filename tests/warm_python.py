"""Programs that begin as copies of one Python with its imports done: what is left of a start is the program itself.

Run as a program, it is that Python: `python -P tests/warm_python.py FD MODULE…`. A copy has the arguments, the variables
and the folder that a Python of its own would have, and ends as one.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

LIMIT_S = 120.0
REQUEST_BYTES = 1 << 17


@dataclass(frozen=True)
class Program:
    """What follows `python` on a command line, with its variables and its folder."""

    words: list[str]
    env: dict[str, str]
    cwd: str


class WarmPython:
    """Starts programs one after the other; the Python that they are copies of begins with the first."""

    def __init__(self, *modules: str, **variables: str) -> None:
        """Take the modules that it imports, and the variables that these read meanwhile."""
        self._modules = modules
        self._variables = variables
        self._begun: tuple[socket.socket, subprocess.Popen[bytes]] | None = None

    def run(self, words: Sequence[str], *, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, as `subprocess.run` does."""
        self._begun = self._begun or self._begin(env)
        connection, original = self._begun
        request = json.dumps(asdict(Program([*words], env, str(cwd)))).encode()
        assert len(request) < REQUEST_BYTES
        kill = threading.Timer(LIMIT_S, os.killpg, (original.pid, signal.SIGKILL))
        kill.start()
        output, errors = _read_both(lambda *fds: socket.send_fds(connection, [request], fds))
        told = connection.recv(16)
        kill.cancel()
        if not told:
            self.close()
            raise subprocess.TimeoutExpired([*words], LIMIT_S, output, errors)
        return subprocess.CompletedProcess([*words], int(told), output, errors)

    def _begin(self, env: dict[str, str]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        """Start the Python that programs are copied from. It ends when the connection is closed."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        clean = {name: value for name, value in env.items() if not name.startswith("PYTHON")}
        with theirs:
            fd = theirs.fileno()
            original = subprocess.Popen(
                [sys.executable, "-P", __file__, str(fd), *self._modules],
                env=clean | self._variables,
                cwd="/",
                stdin=subprocess.DEVNULL,
                pass_fds=(fd,),
                start_new_session=True,
            )
        atexit.register(self.close)
        return ours, original

    def close(self) -> None:
        """End the Python that programs are copied from; the next program begins another one."""
        if self._begun is not None:
            connection, original = self._begun
            connection.close()
            original.wait()
            self._begun = None


def _read_both(give: Callable[[int, int], object]) -> tuple[str, str]:
    """Give the ends of two pipes away and return what is written there until nobody has them any more."""
    (reads, writes), (reads_errors, writes_errors) = os.pipe(), os.pipe()
    with open(reads) as output, open(reads_errors) as errors, ThreadPoolExecutor(1) as pool:
        give(writes, writes_errors)
        os.close(writes)
        os.close(writes_errors)
        later = pool.submit(errors.read)
        return output.read(), later.result()


def _asked(connection: socket.socket) -> Program | None:
    """Return, in a copy, the program that it is to be, and None in the original when the tests have ended."""
    while True:
        request, fds, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 2)
        if not request:
            return None
        pid = os.fork()
        if pid == 0:
            connection.close()
            for number, fd in enumerate(fds, start=1):
                os.dup2(fd, number)
                os.close(fd)
            # Those of the original know whether its own output can be sought in.
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  closed by the interpreter's end
            sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115  as above
            return Program(**json.loads(request))
        for fd in fds:
            os.close(fd)
        connection.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _be(program: Program) -> None:
    """Run the program in this process, as the interpreter would that finds these words."""
    os.environ.clear()
    os.environ.update(program.env)
    os.chdir(program.cwd)
    sys.path[:0] = filter(None, program.env.get("PYTHONPATH", "").split(os.pathsep))
    first, *others = program.words
    if first == "-m":
        sys.path.insert(0, program.cwd)
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *others[1:]]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(others[0], "<string>", "exec"), vars(main))
    else:
        sys.path.insert(0, os.path.dirname(first))
        sys.argv = [first, *others]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    asked = _asked(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        _be(asked)
