"""The parent's handle on the judge's process: start it, ask it, stop and go on (no torch here)."""

from __future__ import annotations

import array
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgeline.tools import errors
from ridgeline.tools.errors import DeviceLostError, EngineError, JudgeCrashed, ProblemError, RidgelineError
from ridgeline.tools.judge.hang_limit import hung_line, reference_limit_s
from ridgeline.tools.judge.memory_check import no_room
from ridgeline.tools.judge.outline import explain_no_room
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.python_env import compute_environment, python_path
from ridgeline.tools.records.problem import ArgSpec, Description, Device, Target
from ridgeline.tools.records.vocabulary import DeviceKind, Interface

logger = logging.getLogger(__name__)

LOAD_LIMIT_S = 480.0
"""For all that the judge does with a reference before the first kernel: some 30 calls. Below the task's own limit."""

_MAX_DESCRIPTORS = 8
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CXX", "CC", "CUDA_HOME")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRegion:
    """One region of the arena: a descriptor to hand to a runner."""

    fd: int
    size_bytes: int
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one tensor argument lies in every set."""

    spec: ArgSpec
    region: int
    offset: int
    set_stride: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProblem:
    """What the judge says of a problem when it has loaded it."""

    description: Description
    n_sets: int
    regions: tuple[SharedRegion, ...]
    places: tuple[Place, ...]  # Signature order, tensors only
    trials: tuple[str, ...]
    degenerate_code: str  # "" when a kernel has work to do
    degenerate_reason: str


class JudgeProcess:
    """A running judge with one problem loaded. Ends with `close()` and with this process."""

    def __init__(self, problem: Target, secret: bytes, cache_dir: Path, *, left_out: set[str] | None = None) -> None:
        """Start the judge and load the problem (3 to 6 s: it imports torch and runs the reference).

        A reference may lose its process the GPU over values that were made for it: `binary_cross_entropy` ends in a
        device-side assert for a probability above 1. Another judge is started then, without those values.

        Args:
            problem: what is judged.
            secret: what inputs and parameters are drawn from.
            cache_dir: where compiled references are kept.
            left_out: what lost earlier judges of this problem the GPU; what is found now is added.

        Raises:
            ProblemError: the reference cannot be judged; one line says why.
            JudgeCrashed: the process went away.
        """
        self.device_kind = problem.device.kind
        self._left_out = set() if left_out is None else left_out
        until = time.monotonic() + LOAD_LIMIT_S
        while not self._has_begun(problem, secret, cache_dir, until - time.monotonic()):
            pass

    def _has_begun(self, problem: Target, secret: bytes, cache_dir: Path, limit_s: float) -> bool:
        """Start a judge and return whether it loaded the problem; if not, there is more to leave out for the next one."""
        try:
            self._begin(problem, secret, cache_dir, limit_s)
        except DeviceLostError as error:
            tried = str(error)
            if tried in self._left_out:
                raise EngineError(f"the judge lost the GPU over what it was to leave out: {tried}") from error
            logger.info("the reference lost the judge its GPU (%s): starting another without that", tried)
            self._left_out.add(tried)
            return False
        return True

    def _begin(self, problem: Target, secret: bytes, cache_dir: Path, limit_s: float) -> None:
        self._pending = b""
        self._is_stopped = False
        self._descriptors: list[int] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._socket, theirs = socket.socketpair()
        try:
            self._process = self._start(theirs, problem, cache_dir)
        except BaseException:
            self._socket.close()
            self._log.close()
            raise
        try:
            self._pin()
            self.problem = self._load(problem, secret, limit_s)
        except ProblemError as error:
            self.close()
            if no_room(self.device_kind) not in str(error):
                raise
            raise _with_figures(error, problem) from error
        except BaseException:
            self.close()
            raise

    def _start(self, theirs: socket.socket, problem: Target, cache_dir: Path) -> subprocess.Popen[bytes]:
        with theirs:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "ridgeline.tools.judge.worker",
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
                env=_environment(problem, cache_dir),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                pass_fds=[theirs.fileno()],
            )

    def _pin(self) -> None:
        """Give the judge the cores of the runner that it alternates with."""
        try:
            os.sched_setaffinity(self._process.pid, measurement_cores())
        except ProcessLookupError as error:
            raise self._crashed("start") from error

    @property
    def pid(self) -> int:
        """Return the process's id."""
        return self._process.pid

    def _load(self, problem: Target, secret: bytes, limit_s: float) -> LoadedProblem:
        self._call_limit_s = reference_limit_s(problem.call_timeout_s)
        reply = self.request(
            "load",
            timeout_s=max(limit_s, 1.0),
            call_limit_s=self._call_limit_s,
            reference_source=problem.reference_source,
            interface=problem.interface,
            tolerance=problem.tolerance,
            secret=secret.hex(),
            device=problem.device.kind.value,
            cache_bytes=problem.device.cache_bytes,
            memory_bytes=problem.device.memory_bytes,
            left_out=sorted(self._left_out),
        )
        regions = tuple(
            SharedRegion(fd=fd, size_bytes=r["bytes"], writable=r["writable"])
            for fd, r in zip(self._descriptors, reply["regions"], strict=True)
        )
        places = tuple(
            Place(spec=ArgSpec.from_json(p["spec"]), region=p["region"], offset=p["offset"], set_stride=p["stride"])
            for p in reply["placements"]
        )
        degenerate = reply["degenerate"] or {"code": "", "reason": ""}
        return LoadedProblem(
            description=Description.from_json(reply["description"]),
            n_sets=reply["n_sets"],
            regions=regions,
            places=places,
            trials=tuple(reply["trials"]),
            degenerate_code=degenerate["code"],
            degenerate_reason=degenerate["reason"],
        )

    def request(self, op: str, *, timeout_s: float = 600.0, **fields: Any) -> dict[str, Any]:
        """Ask for one operation and return its result.

        Raises:
            RidgelineError: what the judge raised, of the same class.
            JudgeCrashed: the process went away or did not answer in time.
        """
        self.cont()
        self._socket.settimeout(timeout_s)
        try:
            self._socket.sendall(json.dumps({"op": op, **fields}).encode() + b"\n")
            line = self._receive_line()
        except TimeoutError as error:
            self._process.kill()
            raise _too_late(op, timeout_s) from error
        except (BrokenPipeError, ConnectionResetError) as error:
            raise self._crashed(op) from error
        if not line:
            raise self._crashed(op)
        reply = self._parsed(line)
        if "error" in reply:
            raise _rebuilt(reply["error"])
        return reply

    def _parsed(self, line: bytes) -> dict[str, Any]:
        """Return a reply; the judge writes whole ones, so anything else came from the one program that it runs.

        Raises:
            ProblemError: it is none.
        """
        try:
            reply = json.loads(line)
            if isinstance(reply, dict):
                return reply
        except ValueError:
            pass
        self._process.kill()
        raise ProblemError(
            f"reference: it wrote {line[:40].decode(errors='replace')!a} to a descriptor that is not its own, the "
            "judge's connection; it may write to standard output and to files that it opened itself"
        )

    def stop(self) -> None:
        """Stop the process; the next request lets it go on."""
        if not self._is_stopped:
            self._is_stopped = True
            self._process.send_signal(signal.SIGSTOP)

    def cont(self) -> None:
        """Let the process go on."""
        if self._is_stopped:
            self._is_stopped = False
            self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the process and release the arena's descriptors."""
        self._socket.close()
        self._process.kill()  # it holds nothing that wants saving
        self._process.wait()
        self._log.close()
        for fd in self._descriptors:
            os.close(fd)
        self._descriptors.clear()

    def _receive_line(self) -> bytes:
        while b"\n" not in self._pending:
            space = socket.CMSG_SPACE(_MAX_DESCRIPTORS * array.array("i").itemsize)
            data, ancillary, _, _ = self._socket.recvmsg(1 << 20, space, socket.MSG_CMSG_CLOEXEC)
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self._descriptors += array.array("i", content[: len(content) - len(content) % 4])
            if not data:
                return b""
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _crashed(self, op: str) -> RidgelineError:
        code = self._process.wait()
        self._log.seek(0)
        lines = self._log.read()[-4000:].decode(errors="replace").strip().splitlines()
        how = f"killed by signal {-code}" if code < 0 else f"exit status {code}"
        where = hung_line("\n".join(lines), "reference.py")
        if op == "load" and where is not None:
            return _hung(where, self._call_limit_s)
        if op == "load":
            last = f"; it last said: {lines[-1]}" if lines else ""
            remedy = "it may neither exit nor crash"
            if code == -signal.SIGKILL:  # the kernel's choice when memory runs out
                remedy = f"memory probably ran out: {no_room(self.device_kind)}"
            return ProblemError(f"reference: it ended the process that ran it ({how}){last}; {remedy}")
        return JudgeCrashed(f"the judge died during {op} ({how}){': ' + lines[-1] if lines else ''}")


def _with_figures(error: ProblemError, problem: Target) -> ProblemError:
    """Return the error of a reference whose memory ran out with how much it needs, when that can be told."""
    with contextlib.suppress(EngineError):
        needed = explain_no_room(problem.reference_source, problem.tolerance, problem.device)
        if needed:
            return ProblemError(f"reference.py: memory ran out: {needed}")
    return error


def _too_late(op: str, timeout_s: float) -> RidgelineError:
    if op == "load":
        return ProblemError(
            f"reference: not judged within {timeout_s:.0f} s: it is too slow here; make its sizes smaller"
        )
    return JudgeCrashed(f"the judge did not answer {op} within {timeout_s:.0f} s")


def _hung(where: str, limit_s: float) -> ProblemError:
    part = f"reference.py: {where}" if where else "reference.py"
    remedy = "mend an endless loop, make its sizes smaller, or raise call_timeout_s above"
    return ProblemError(f"{part}: did not end within {limit_s:.0f} s; {remedy} {limit_s / 2:.0f} in problem.yaml")


def _environment(problem: Target, cache_dir: Path) -> dict[str, str]:
    compiled = cache_dir / "inductor"
    return {
        **{name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        **compute_environment(problem.device, in_python=problem.interface != Interface.C),
        "PYTHONPATH": python_path(),
        "TORCHINDUCTOR_CACHE_DIR": str(compiled),
        "TORCHINDUCTOR_COMPILE_THREADS": _compile_threads(problem.device),
    }


def _compile_threads(device: Device) -> str:
    """No pool of helper processes beside a CPU's measurement; max-autotune on a GPU compiles some twenty kernels."""
    return str(min(len(measurement_cores()), 8)) if device.kind is DeviceKind.CUDA else "1"


def _rebuilt(error: dict[str, str]) -> RidgelineError:
    kind = getattr(errors, error["type"], EngineError)
    return kind(error["message"]) if issubclass(kind, RidgelineError) else EngineError(error["message"])
