"""The parent's handle on the judge's process: start it, ask it, stop it and let it go on (no torch here)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from ridgeline.tools.engine import TASK_LIMIT_S
from ridgeline.tools.errors import (
    REFERENCE,
    BadReferenceError,
    DeviceLostError,
    EngineError,
    JudgeDied,
    JudgeKilled,
    JudgeShortError,
    NoRoomError,
    RidgelineError,
    TrustedProcessLost,
)
from ridgeline.tools.judge.connection import JudgeConnection
from ridgeline.tools.judge.hang_limit import hung_line, reference_limit_s
from ridgeline.tools.judge.memory_check import no_room
from ridgeline.tools.judge.messages import (
    Load,
    NotAReplyError,
    Redraw,
    Request,
    decode_reply,
    encode_request,
    operation,
)
from ridgeline.tools.judge.outline_process import explain_no_room
from ridgeline.tools.judge.replies import Failed, Loaded, ProblemFacts, RegionForm
from ridgeline.tools.judge.start import judge_command, judge_environment
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.kills import killed_words
from ridgeline.tools.machine.lifeline import GroupProcess
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import SkippedTrial, Target

R = TypeVar("R", bound=Record)

logger = logger_of(__name__)

LOAD_LIMIT_S = 480.0
"""Limit of `load`, which calls the reference some 90 to 230 times. It lies below TASK_LIMIT_S."""

_SAID_BYTES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRegion(RegionForm):
    """One region of the judge's memory: a descriptor to hand to a runner."""

    fd: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProblem(ProblemFacts):
    """A problem that the judge has loaded, with its memory."""

    regions: tuple[SharedRegion, ...]
    left_out: tuple[SkippedTrial, ...] = ()  # kinds that were among `timed_kinds` until the reference refused them

    @classmethod
    def of(cls, loaded: Loaded, descriptors: Sequence[int]) -> Self:
        """Return the problem of a reply, with the descriptors that came beside it."""
        forms = zip(descriptors, loaded.regions, strict=True)
        return cls(
            **{each.name: getattr(loaded, each.name) for each in fields(ProblemFacts)},
            regions=tuple(
                SharedRegion(fd=fd, size_bytes=form.size_bytes, writable=form.writable) for fd, form in forms
            ),
        )


class _KilledError(NoRoomError):
    """SIGKILL ended a judge while it loaded the reference: memory ran out, where another judge ends so too."""


class JudgeProcess:
    """A running judge with one problem loaded. Ends with `close()` and with this process, as do processes of the reference."""

    def __init__(
        self,
        problem: Target,
        secret: bytes,
        cache_dir: Path,
        *,
        fatal_attempts: set[str] | None = None,
        has_candidates: bool = True,
    ) -> None:
        """Start the judge and load the problem, which imports torch and runs the reference.

        A reference may lose its process the GPU over values that were made for it: `binary_cross_entropy` ends in a
        device-side assert for a probability above 1. Then another judge is started without those values.

        A judge that is killed while it loads is started once more: memory ran out, or something outside killed it once.

        Args:
            problem: what is judged.
            secret: what inputs and parameters are drawn from.
            cache_dir: where references' graphs and what is compiled of them are kept.
            fatal_attempts: what lost earlier judges of this problem the GPU; what is found now is added.
            has_candidates: False where PyTorch's own ways alone are timed: no trials are looked for.

        Raises:
            ProblemError: the reference cannot be judged; one line says why.
            TrustedProcessLost: the process went away.
        """
        self.device_kind = problem.device.kind
        self._fatal_attempts = set() if fatal_attempts is None else fatal_attempts
        self._has_candidates = has_candidates
        self._was_killed = is_loaded = False
        until = time.monotonic() + LOAD_LIMIT_S
        while not is_loaded:
            is_loaded = self._try_to_begin(problem, secret, cache_dir, until - time.monotonic())

    def _try_to_begin(self, problem: Target, secret: bytes, cache_dir: Path, limit_s: float) -> bool:
        """Start a judge and return whether it loaded the problem; one that did not is noted, and another may load it."""
        try:
            self._begin(problem, secret, cache_dir, limit_s)
        except NoRoomError as error:
            if self._was_killed or not isinstance(error, _KilledError):
                raise _with_figures(error, problem) from error
            logger.warning("the judge was killed while it loaded the reference: starting another")
            self._was_killed = True
            return False
        except DeviceLostError as error:
            if error.tried in self._fatal_attempts:
                raise EngineError(f"the judge lost the GPU over what it was to leave out: {error.tried}") from error
            logger.info("the reference lost the judge its GPU (%s): starting another without that", error.tried)
            self._fatal_attempts.add(error.tried)
            return False
        return True

    def _begin(self, problem: Target, secret: bytes, cache_dir: Path, limit_s: float) -> None:
        self._is_stopped = False
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._hang_report = tempfile.TemporaryFile()  # noqa: SIM115
        self._connection = JudgeConnection()
        try:
            self._process = self._start(problem, cache_dir)
        except BaseException:
            self._release()
            raise
        try:
            self._pin()
            self.problem = self._load(problem, secret, cache_dir / "graphs", limit_s)
        except BaseException:
            self.close()
            raise

    def _start(self, problem: Target, cache_dir: Path) -> GroupProcess[bytes]:
        with self._connection.theirs as theirs:
            descriptors = (theirs.fileno(), self._hang_report.fileno())
            return GroupProcess(
                judge_command(*descriptors),
                env=judge_environment(problem, cache_dir),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                pass_fds=descriptors,
            )

    def _pin(self) -> None:
        """Give the judge the cores of the runner that it alternates with."""
        try:
            os.sched_setaffinity(self._process.pid, measurement_cores())
        except ProcessLookupError as error:
            raise self._crashed("start") from error

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    def _load(self, problem: Target, secret: bytes, graphs: Path, limit_s: float) -> LoadedProblem:
        self._call_limit_s = reference_limit_s(problem.call_timeout_s)
        request = Load(
            reference_source=problem.reference_source,
            interface=problem.interface,
            tolerance=problem.tolerance,
            secret=secret.hex(),
            call_limit_s=self._call_limit_s,
            device=problem.device.kind,
            cache_bytes=problem.device.cache_bytes,
            memory_bytes=problem.device.memory_bytes,
            fatal_attempts=tuple(sorted(self._fatal_attempts)),
            graph_folder=str(graphs),
            has_candidates=self._has_candidates,
        )
        loaded = self.ask(request, timeout_s=max(limit_s, 1.0))
        return LoadedProblem.of(loaded, self._connection.descriptors)

    def ask(self, request: Request[R], *, timeout_s: float = TASK_LIMIT_S) -> R:
        """Ask for one operation and return its reply.

        Raises:
            RidgelineError: the judge's own failure, as the reply tells it.
            TrustedProcessLost: the process went away or did not answer in time.
        """
        self.cont()
        try:
            line = self._connection.exchange(encode_request(request), timeout_s)
        except TimeoutError as error:
            self._process.kill()
            raise _too_late(request, timeout_s) from error
        if not line:
            raise self._ended(request)
        reply = self._understood(line, request)
        if isinstance(reply, Failed):
            failure = reply.error.as_exception()
            raise JudgeShortError(str(failure), request) if isinstance(failure, JudgeShortError) else failure
        return reply

    def _understood(self, line: bytes, request: Request[R]) -> R | Failed:
        """Return the reply in a line. The judge writes whole replies, so anything else came from the reference.

        Raises:
            ProblemError: the line is no reply.
        """
        try:
            return decode_reply(line, request)
        except NotAReplyError as error:
            self._process.kill()
            raise BadReferenceError.of_text(
                f"it wrote {line[:40].decode(errors='replace')!a} to a descriptor that is not its own, the "
                "judge's connection; it may write to standard output and to files that it opened itself"
            ) from error

    def redraw(self) -> None:
        """Let the judge draw trials and timed sets from a new secret.

        Raises:
            RidgelineError: as `ask` does.
        """
        self.ask(Redraw(secret=os.urandom(16).hex()))

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
        """End the process and release the memory's descriptors."""
        self._process.kill()  # a judge holds nothing that must be saved
        self._process.wait()
        self._release()

    def _release(self) -> None:
        self._connection.close()
        self._log.close()
        self._hang_report.close()

    def _ended(self, request: Request[Any]) -> RidgelineError:
        """Return the error for a process that ended while it was asked: only loading blames the reference."""
        return self._ended_by_reference() if isinstance(request, Load) else self._crashed(operation(type(request)))

    def _ended_by_reference(self) -> BadReferenceError:
        how = self._exit()
        where = hung_line(_end_of(self._hang_report), REFERENCE)
        if where is not None:
            return _hung(where, self._call_limit_s)
        lines = self._last_lines()
        last = f"; it last said: {lines[-1]}" if lines else ""
        line = f"it ended the process that ran it ({how}){last}; "
        if self._process.returncode == -signal.SIGKILL:  # the kernel's choice when memory runs out
            return _KilledError.of_text(f"{line}memory probably ran out: {no_room(self.device_kind)}")
        return BadReferenceError.of_text(f"{line}it may neither exit nor crash")

    def _crashed(self, op: str) -> JudgeDied:
        how, lines = self._exit(), self._last_lines()
        killed = killed_words(self._process.returncode)
        if killed is not None:
            return JudgeKilled(f"during {op} the judge {killed}")
        return JudgeDied(f"the judge died during {op} ({how}){': ' + lines[-1] if lines else ''}")

    def _exit(self) -> str:
        code = self._process.wait()
        return f"killed by signal {-code}" if code < 0 else f"exit status {code}"

    def _last_lines(self) -> list[str]:
        return _end_of(self._log).strip().splitlines()


def _end_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read()[-_SAID_BYTES:].decode(errors="replace")


def _with_figures(error: NoRoomError, problem: Target) -> NoRoomError:
    """Return the error with how much memory judging takes, when that can be told; else the error itself."""
    with contextlib.suppress(EngineError):
        needed = explain_no_room(problem.reference_source, problem.tolerance, problem.device)
        if needed:
            return NoRoomError.of_text(f"memory ran out: {needed}")
    return error


def _too_late(request: Request[Any], timeout_s: float) -> RidgelineError:
    if isinstance(request, Load):
        return BadReferenceError.of_text(
            f"not judged within {timeout_s:.0f} s: it is too slow here; make its sizes smaller"
        )
    return TrustedProcessLost(f"the judge did not answer {operation(type(request))} within {timeout_s:.0f} s")


def _hung(where: str, limit_s: float) -> BadReferenceError:
    part = f"{where}: " if where else ""
    remedy = "mend an endless loop, make its sizes smaller, or raise call_timeout_s above"
    return BadReferenceError.of_text(
        f"{part}did not end within {limit_s:.0f} s; {remedy} {limit_s / 2:.0f} in problem.yaml"
    )
