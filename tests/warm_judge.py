"""Judges that begin as copies of one process which has imported torch: what is left of a start is the problem's own load.

Run as a program, it is that process, one of originals.py: `python -P tests/warm_judge.py FD HELD`. A judge answers on
the same socket, in the same words and with the same limits and variables as one that is started by itself; it is a child
of its keeper, which hands on its id and how it ended. So does a process that outlines references. Tests of the command
line, of a session and of the engine's process start theirs as users do.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, NoReturn
from unittest import mock

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
from tests.originals import REQUEST_BYTES, connected, copy_for_each_request

if TYPE_CHECKING:
    from ridgeline.tools.judge.process import JudgeProcess
    from ridgeline.tools.records.problem import Target

FIRST_FD = 3
"""A copy has its connection and its report of a hang from here on."""
OWN_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
"""Read when it is used; the other variables of a judge are those of the process that it is a copy of."""


@dataclass(frozen=True)
class Asked:
    """What a copy is to be: a judge with its own variable, or an outlining process with these words and variables.

    A judge has as many threads as are named, if any: beside other workers' judges its second one would spin for nothing.
    """

    own: str = ""
    threads: int = 0
    words: Sequence[str] = ()
    variables: dict[str, str] | None = None


class WarmProcess:
    """A judge or an outlining process, as `subprocess.Popen` would hold it."""

    def __init__(self, status: socket.socket, stdin: IO[str] | None = None, stdout: IO[str] | None = None) -> None:
        self._status = status
        self.stdin, self.stdout = stdin, stdout
        self.returncode: int | None = None
        self.pid = int(_line(status))

    def communicate(self) -> None:
        """Close the pipes and wait; nothing of what it wrote is kept."""
        for stream in (self.stdin, self.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # what it never read
                    stream.close()
        self.wait()

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
    """The processes that judges are copied from, one for each environment; outlining ones are copies of a CPU's."""

    def __init__(self) -> None:
        self._originals: dict[str, socket.socket] = {}
        self._lock = threading.Lock()  # a test may judge in two threads

    def start(self, fds: tuple[int, int, int], environment: dict[str, str]) -> WarmProcess:
        """Start a judge with its connection, its report of a hang and its log."""
        asked = Asked(own=environment[OWN_VARIABLE], threads=int(os.environ.get("OMP_NUM_THREADS", "0")))
        return WarmProcess(self._copied(environment, asked, fds))

    def outlining(self, words: Sequence[str], *, env: dict[str, str], **_: object) -> WarmProcess:
        """Start a process that outlines references, as `subprocess.Popen` would with pipes for its text."""
        reads, writes = os.pipe()
        reads_answers, writes_answers = os.pipe()
        flags = [word for word in words if word.startswith("--")]
        try:
            status = self._copied(_cpu_environment(), Asked(words=flags, variables=env), (reads, writes_answers))
        finally:
            os.close(reads)
            os.close(writes_answers)
        return WarmProcess(status, open(writes, "w"), open(reads_answers))

    def begin(self) -> None:
        """Begin the process that judges of this machine's processor are copied from, which imports for some seconds."""
        with self._lock:
            self._original(_cpu_environment())

    def _original(self, environment: dict[str, str]) -> socket.socket:
        """Return the connection to the process with this environment, which is begun where there is none."""
        key = json.dumps({name: environment[name] for name in sorted(environment) if name != OWN_VARIABLE})
        if key not in self._originals:
            self._originals[key] = connected(__file__, key=key, environment=environment)
        return self._originals[key]

    def _copied(self, environment: dict[str, str], asked: Asked, fds: Sequence[int]) -> socket.socket:
        """Ask an original for a copy with these descriptors; returns where its keeper tells of it."""
        request = json.dumps(asdict(asked)).encode()
        assert len(request) < REQUEST_BYTES
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            socket.send_fds(self._original(environment), [request], [*fds, theirs.fileno()])
        return ours

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Have every judge begin as a copy, and every process that outlines references."""
        from ridgeline.tools.judge import outline_process, process
        from ridgeline.tools.judge.start import judge_environment

        def start(judge: JudgeProcess, problem: Target, cache_dir: Path) -> WarmProcess:
            with judge._connection.theirs as theirs:
                fds = theirs.fileno(), judge._hang_report.fileno(), judge._log.fileno()
                return self.start(fds, judge_environment(problem, cache_dir))

        with (
            mock.patch.object(process.JudgeProcess, "_start", start),
            mock.patch.object(outline_process, "GroupProcess", self.outlining),
        ):
            yield

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Have that of the evaluators too that an engine starts with its usual command."""
        from ridgeline.tools.engines.local import LocalEngine
        from tests.warm_evaluator import warm_evaluator_command

        usual = LocalEngine.__init__.__kwdefaults__
        with self.starting(), mock.patch.dict(usual, evaluator=warm_evaluator_command):
            yield

    def close(self) -> None:
        for connection in self._originals.values():
            connection.close()


@cache
def _cpu_environment() -> dict[str, str]:
    """Return the variables of a judge of this machine's processor."""
    from ridgeline.tools.judge.start import judge_environment
    from ridgeline.tools.machine.devices import detect_device

    return judge_environment(SimpleNamespace(device=detect_device("cpu")), Path("/"))


def _line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        data = connection.recv(1)
        assert data, "the process that judges are copied from has ended"
        line += data
    return line


def _outline(asked: Asked, fds: list[int]) -> None:
    """Be a process that outlines references and that reads and writes these descriptors."""
    import torch

    from ridgeline.tools.judge.worker import outline_main

    reads, writes = (os.dup2(fd, 100 + i) for i, fd in enumerate(fds))
    os.dup2(reads, 0)
    os.dup2(writes, 1)
    os.closerange(FIRST_FD, 1024)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115  the process closes them
    os.environ.clear()
    os.environ.update(asked.variables or {})
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    sys.argv[1:] = [str(os.getppid()), *asked.words]
    outline_main.main()


def _judge(own: str, threads: int, fds: list[int]) -> None:
    """Be a judge with these descriptors and no others."""
    import torch

    from ridgeline.tools.judge.worker import __main__ as worker

    connection, hang_report, log = (os.dup2(fd, 100 + i) for i, fd in enumerate(fds))
    os.dup2(0, 1)
    os.dup2(log, 2)
    os.dup2(connection, FIRST_FD)
    os.dup2(hang_report, FIRST_FD + 1)
    os.closerange(FIRST_FD + 2, 1024)
    os.environ[OWN_VARIABLE] = own
    if threads:
        torch.set_num_threads(threads)
    sys.argv[1:] = [str(FIRST_FD), str(os.getppid()), str(FIRST_FD + 1)]
    worker.main()


def _keep(asked: Asked, fds: list[int]) -> None:
    """Start the copy, say its id, and how it ended when it has."""
    status = socket.socket(fileno=fds.pop())
    pid = os.fork()
    if pid == 0:
        _end_after(
            partial(_judge, asked.own, asked.threads, fds) if asked.variables is None else partial(_outline, asked, fds)
        )
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
    """Do the imports, and be in each copy what is asked for."""
    del sys.path[-1]
    import torch

    from ridgeline.tools.judge.worker import __main__, outline_main  # noqa: F401  the import is the point
    from ridgeline.tools.judge.worker.graph_export import export_graph
    from ridgeline.tools.records.vocabulary import PrecisionClass

    export_graph(torch.nn.ReLU(), [torch.ones(1)])  # imports 1200 modules more when it is first called
    outline_main.outline(outline_main._FIRST, PrecisionClass.FP32, with_graph=True)
    gc.freeze()
    asked = copy_for_each_request(int(sys.argv[1]), sys.argv[2])
    if asked is not None:
        request, fds = asked
        _end_after(partial(_keep, Asked(**json.loads(request)), fds))


if __name__ == "__main__":
    main()
