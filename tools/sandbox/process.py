"""The parent's handle on a running confined program, and how such a program ended."""

from __future__ import annotations

import array
import os
import select
import signal
import socket
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import IO, Self

from ridgeline.tools.errors import EngineError

Stream = int | IO[bytes] | None  # as subprocess.Popen takes it

_START_TIMEOUT_S = 20.0  # a loaded machine; 15 ms otherwise
_LONGEST_POLL_S = 86400.0
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_LOST_SUPERVISOR = "its supervisor was killed"


class Limit(StrEnum):
    """Limit at which a launcher ended its program: a word of its status line."""

    NONE = "-"
    WALL = "wall"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    STOPPED = "stopped"


_LIMIT_REASONS = {
    Limit.WALL: "ran past its time limit",
    Limit.MEMORY: "used more memory than its limit",
    Limit.PROCESSES: "started more processes or threads than its limit",
    Limit.DISK: "wrote more to its folder than its limit",
    Limit.STOPPED: "was ended by its parent",
}
_SIGNAL_REASONS: dict[int, str] = {
    signal.SIGSYS: "made a system call that is not allowed",
    signal.SIGXCPU: "used more CPU time than its limit",
    signal.SIGXFSZ: "wrote a file larger than its limit",
    signal.SIGSEGV: "touched memory that it may not (segmentation fault)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitStatus:
    """End of a confined program: by itself (`code`), by a signal, or past a limit."""

    code: int | None  # its own exit status; None when it did not end by itself
    signal: int | None = None
    limit: Limit = Limit.NONE
    peak_memory_bytes: int = 0
    cpu_s: float = 0.0
    message: str = ""
    was_started: bool = True  # False: the sandbox could not be set up, or the command could not be executed
    has_lost_supervisor: bool = False  # something ended the sandbox itself

    @property
    def is_success(self) -> bool:
        """Say whether the program ended by itself with status 0."""
        return self.code == 0

    @property
    def was_killed(self) -> bool:
        """Say whether a SIGKILL that no limit sent ended the program: the kernel's, a person's or its own."""
        return self.signal == signal.SIGKILL or self.has_lost_supervisor


class SandboxedProcess:
    """A program in the sandbox, all of whose processes end with it, with `kill()`, and with this process.

    `host_pid` is the confined program itself in this PID namespace. `stdin`, `stdout` and `stderr` are the pipes that
    were asked for. Not to be used from two threads at once.
    """

    def __init__(self, launched: subprocess.Popen[bytes], status: socket.socket, host_pid: int) -> None:
        self.host_pid = host_pid
        self.stdin: IO[bytes] | None = launched.stdin
        self.stdout: IO[bytes] | None = launched.stdout
        self.stderr: IO[bytes] | None = launched.stderr
        self._launched = launched
        self._status = status
        self._is_told_to_end = False
        self._exit: ExitStatus | None = None

    @property
    def supervisor_pid(self) -> int:
        """Return the process that holds the sandbox: bubblewrap in tier A, the outer guard in tier B."""
        return self._launched.pid

    def poll(self) -> ExitStatus | None:
        """Return how the program ended, None while it runs."""
        if self._exit is None and self._launched.poll() is not None:
            self._exit = self._final_status(self._launched.returncode)
            self._status.close()
        return self._exit

    def wait(self, timeout_s: float | None = None) -> ExitStatus:
        """Return how the program ended.

        Raises:
            TimeoutError: it still runs after `timeout_s`.
        """
        try:
            wait_for(self._launched, timeout_s)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"still running after {timeout_s} s") from error
        ended = self.poll()
        if ended is None:
            raise EngineError("the sandbox's supervisor ended without a status")
        return ended

    def kill(self) -> ExitStatus:
        """End the program with every process that it started, and return how it ended."""
        if self.poll() is None:
            self._is_told_to_end = True
            self._status.shutdown(socket.SHUT_WR)  # the guard sees the hang-up and ends the tree
            try:
                wait_for(self._launched, 2.0)
            except subprocess.TimeoutExpired:
                self._launched.kill()
        return self.wait(_START_TIMEOUT_S)

    def stop(self) -> None:
        """Stop the program: no thread of it runs until `cont()`."""
        self._signal(signal.SIGSTOP)

    def cont(self) -> None:
        """Let the stopped program go on."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End the program if it runs and close the pipes."""
        self.kill()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._exit is None:
            try:
                os.kill(self.host_pid, number)
            except ProcessLookupError:
                return  # it ended on its own in the meantime; poll() tells how

    def _final_status(self, returncode: int) -> ExitStatus:
        lines: list[str] = []
        self._status.setblocking(False)
        try:
            while line := self._status.recv(512):
                lines.append(line.decode(errors="replace"))
        except (BlockingIOError, ConnectionResetError):
            pass  # all that was sent has been read
        ended = parse_status(lines, returncode)
        if ended.limit is Limit.STOPPED and not self._is_told_to_end:
            # in tier B the inner guard takes the outer one's end for this process's hang-up
            number = -returncode if returncode < 0 else None
            ended = replace(ended, limit=Limit.NONE, signal=number, message=_LOST_SUPERVISOR, has_lost_supervisor=True)
        return ended


def launch(
    argv: Sequence[str],
    *,
    ours: socket.socket,
    guards_fd: int,
    pass_fds: Sequence[int],
    stdin: Stream,
    stdout: Stream,
    stderr: Stream,
) -> SandboxedProcess:
    """Start `argv`, whose guard reports on `guards_fd`, and return when the command itself is about to run.

    Closes `guards_fd`, and `ours` when it fails.

    Raises:
        EngineError: the sandbox could not be set up, or the command could not be executed.
    """
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    ours.settimeout(_START_TIMEOUT_S)
    try:
        launched = subprocess.Popen(
            argv, env={}, cwd="/", stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=[*pass_fds, guards_fd]
        )
    except OSError as error:
        ours.close()
        raise EngineError(f"sandbox: cannot start {argv[0]}: {error.strerror}") from error
    finally:
        os.close(guards_fd)
    try:
        line, pid = _receive(ours)
    except TimeoutError:
        line, pid = "it did not start in time", 0
    if line == "ready":
        return SandboxedProcess(launched, ours, pid)
    ours.close()
    raise EngineError(f"sandbox: {_why_it_failed(launched, line)}")


def wait_for(process: subprocess.Popen[bytes], timeout_s: float | None) -> None:
    """Wait until a process has ended and take its status.

    `Popen.wait` with a limit looks at ever longer intervals, up to 50 ms: both processes of a kernel's evaluation ended
    30 ms late.

    Raises:
        subprocess.TimeoutExpired: it still runs after `timeout_s`.
    """
    if timeout_s is not None and process.poll() is None:
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:  # a kernel before 5.3, or a sandbox around us that has no such call
            process.wait(timeout_s)
            return
        try:
            ending = select.poll()
            ending.register(descriptor, select.POLLIN)
            if not ending.poll(1e3 * min(max(timeout_s, 0.0), _LONGEST_POLL_S)):
                raise subprocess.TimeoutExpired(process.args, timeout_s)
        finally:
            os.close(descriptor)
    process.wait()


def signal_name(number: int) -> str:
    """Return "SIGSEGV", or "signal 40" for a signal without a name, as most real-time signals are."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _why_it_failed(launched: subprocess.Popen[bytes], line: str) -> str:
    launched.kill()
    launched.wait()
    said = launched.stderr.read().decode(errors="replace").strip() if launched.stderr else ""
    for pipe in (launched.stdin, launched.stdout, launched.stderr):
        if pipe is not None:
            pipe.close()
    return line.removeprefix("failed 125 ").removeprefix("failed 127 ") or said or "its launcher ended without a word"


def _receive(status: socket.socket) -> tuple[str, int]:
    """Return the next message and its sender's pid in this namespace; the kernel vouches for the pid."""
    space = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(16 * array.array("i").itemsize)
    data, ancillary, _, _ = status.recvmsg(512, space)
    pid = 0
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            pid = _CREDENTIALS.unpack(content[: _CREDENTIALS.size])[0]
    return data.decode(errors="replace"), pid


def parse_status(lines: Sequence[str], returncode: int) -> ExitStatus:
    """Return how a confined program ended, from its launcher's status lines and exit status.

    The program's process tells of a failed exec first, then the guard tells of its end: the former says why.
    """
    failed = next((line for line in lines if line.startswith("failed ")), None)
    if failed is not None:
        return ExitStatus(code=127, message=" ".join(failed.split()[2:]), was_started=False)
    words = lines[-1].split() if lines else []
    if words[:1] != ["exit"] or len(words) != 5:
        number = -returncode if returncode < 0 else None
        return ExitStatus(code=None, signal=number, message=_LOST_SUPERVISOR, has_lost_supervisor=True)
    return _ending(int(words[1]), Limit(words[2]), peak_memory_bytes=int(words[3]), cpu_s=float(words[4]))


def _ending(wait_status: int, limit: Limit, *, peak_memory_bytes: int, cpu_s: float) -> ExitStatus:
    """Return what an `exit` line tells."""
    ended = partial(ExitStatus, limit=limit, peak_memory_bytes=peak_memory_bytes, cpu_s=cpu_s)
    if limit is not Limit.NONE:
        return ended(code=None, message=f"killed: it {_LIMIT_REASONS[limit]}")
    if os.WIFSIGNALED(wait_status):
        number = os.WTERMSIG(wait_status)
        why = f": it {_SIGNAL_REASONS[number]}" if number in _SIGNAL_REASONS else ""
        return ended(code=None, signal=number, message=f"killed by {signal_name(number)}{why}")
    code = os.WEXITSTATUS(wait_status)
    return ended(code=code, message=f"exit status {code}")
