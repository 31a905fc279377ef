"""Programs that begin as copies of one Python with its imports done: what is left of a start is the program itself.

Run as a program, it is that Python, one of originals.py: `python -P tests/warm_python.py FD HELD MODULE…`. A copy has
the arguments, the variables and the folder that a Python of its own would have, and ends as one. It is the child of a
keeper, a further copy, which tells its process id and how it ended; several run side by side.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Self

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
from tests.originals import REQUEST_BYTES, connected, copy_for_each_request

LIMIT_S = 120.0
OPEN_FILES = 256
"""More than the original has open."""


@dataclass(frozen=True)
class Program:
    """What follows `python` on a command line, with its variables and its folder."""

    words: list[str]
    env: dict[str, str]
    cwd: str


class WarmProgram:
    """A program that runs, with what tests use of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], keeper: socket.socket, outputs: Sequence[IO[str] | None]) -> None:
        """Take its keeper, which tells its process id first, and the ends of the pipes that it writes to."""
        self.args = ["python", *words]
        self.stdout, self.stderr = outputs
        self.returncode: int | None = None
        self._has_ended = threading.Event()
        told = keeper.recv(16)
        if not told:
            raise ChildProcessError("the Python that programs are copied from has ended")
        self.pid = int(told)
        threading.Thread(target=self._learn_its_end, args=(keeper,), daemon=True).start()

    def _learn_its_end(self, keeper: socket.socket) -> None:
        with keeper:
            told = keeper.recv(16)
        self.returncode = int(told) if told else -signal.SIGKILL
        self._has_ended.set()

    def wait(self, timeout: float | None = None) -> int:
        """Return how it ended; raises `subprocess.TimeoutExpired` where it has not by then."""
        if not self._has_ended.wait(timeout) or self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def poll(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return what it writes, and nothing of a stream that is no pipe; raises `subprocess.TimeoutExpired`."""
        said: list[list[str]] = [[], []]
        until = time.monotonic() + (LIMIT_S if timeout is None else timeout)
        readers = []
        for stream, into in zip((self.stdout, self.stderr), said, strict=True):
            if stream is not None:
                readers.append(threading.Thread(target=lambda s=stream, i=into: i.append(s.read()), daemon=True))
                readers[-1].start()
        for reader in readers:
            reader.join(max(0.0, until - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or LIMIT_S)
        self.wait(max(0.0, until - time.monotonic()))
        self._close()
        return "".join(said[0]), "".join(said[1])

    def _close(self) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self.wait()


class WarmPython:
    """Starts programs; the Python that they are copies of begins with the first of any worker."""

    def __init__(self, *modules: str, **variables: str) -> None:
        """Take the modules that it imports, and the variables that these read meanwhile."""
        self._modules = modules
        self._variables = variables
        self._original: socket.socket | None = None

    def run(self, words: Sequence[str], *, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, as `subprocess.run` does; one that takes too long is killed with what it started."""
        with self.start(words, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            try:
                output, errors = program.communicate(LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
                raise
            return subprocess.CompletedProcess([*words], program.wait(), output, errors)

    def start(
        self,
        words: Sequence[str],
        *,
        env: dict[str, str],
        cwd: Path | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> WarmProgram:
        """Start a program, in a process group of its own; `stdout` and `stderr` are those of `subprocess.Popen`."""
        self._original = self._original or self._connected(env)
        request = json.dumps(asdict(Program([*words], env, str(cwd or Path.cwd())))).encode()
        assert len(request) < REQUEST_BYTES
        ours, keepers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reads, writes = _output(1, stdout)
        reads_errors, writes_errors = (None, os.dup(writes)) if stderr == subprocess.STDOUT else _output(2, stderr)
        given = [writes, writes_errors, keepers.detach()]
        try:
            socket.send_fds(self._original, [request], given)
        finally:
            for fd in given:
                os.close(fd)
        return WarmProgram(words, ours, (reads, reads_errors))

    def _connected(self, env: dict[str, str]) -> socket.socket:
        """Return a connection to the Python that programs are copied from."""
        clean = {name: value for name, value in env.items() if not name.startswith("PYTHON")}
        key = json.dumps(self._variables, sort_keys=True)
        atexit.register(self.close)
        return connected(__file__, *self._modules, key=key, environment=clean | self._variables)

    def close(self) -> None:
        """Leave the Python that programs are copied from to others; the next program finds it again."""
        if self._original is not None:
            self._original.close()
            self._original = None


def _output(number: int, asked: int | None) -> tuple[IO[str] | None, int]:
    """Return the end that a test reads, if any, and the one that the program writes to, as `subprocess.Popen` has them."""
    if asked == subprocess.PIPE:
        reads, writes = os.pipe()
        return open(reads), writes
    if asked == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_WRONLY)
    return None, os.dup(number if asked is None else asked)


def _asked(fd: int, held: str) -> Program | None:
    """Return, in a copy, the program that it is to be, and None in the original when the tests have ended."""
    asked = copy_for_each_request(fd, held)
    if asked is None:
        return None
    request, (*outputs, told) = asked
    _keep(socket.socket(fileno=told))
    for number, each in enumerate(outputs, start=1):
        os.dup2(each, number)
        os.close(each)
    # Those of the original know whether its own output can be sought in.
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  closed by the interpreter's end
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115  as above
    return Program(**json.loads(request))


def _keep(told: socket.socket) -> None:
    """Return in a further copy, and stay behind to tell its process id and how it ends."""
    pid = os.fork()
    if pid == 0:
        told.close()
        os.setpgid(0, 0)
        return
    os.closerange(0, told.fileno())
    os.closerange(told.fileno() + 1, OPEN_FILES)
    with contextlib.suppress(BrokenPipeError):  # the test has ended
        told.send(b"%d" % pid)
        told.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


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
    del sys.path[-1], sys.modules["tests.originals"], sys.modules["tests"]  # a program finds what its own variables say
    for name in sys.argv[3:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else the copies look through everything at each collection, and at their ends, and copy its pages
    asked = _asked(int(sys.argv[1]), sys.argv[2])
    if asked is not None:
        _be(asked)
