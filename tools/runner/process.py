"""The parent's handle on a runner: the sandboxed process that holds one candidate (no torch here).

What a runner says is not believed. A reply counts when it answers the request that is open, and nothing else may come;
whatever goes wrong is a RunnerFailure, which is data about the candidate.
"""

from __future__ import annotations

import os
import secrets
import signal
import time

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.judge.replies import Place
from ridgeline.tools.machine.process_use import Threads
from ridgeline.tools.records.finding import CandidateFault
from ridgeline.tools.records.vocabulary import ArgKind, ReasonCode, Status
from ridgeline.tools.runner.fault_address import locate
from ridgeline.tools.runner.start import SOCKET_INSIDE, RunnerPlan, RunnerStart
from ridgeline.tools.runner.wire import LoopTime
from ridgeline.tools.sandbox.sandbox import Sandbox

WIRE_VERSION = 1
_LONGEST_LINE = 4096
_MOST_DIGITS = 19  # of an int64
_EXIT_WAIT_S = 5.0

_FAILED = {
    "load_failed": ReasonCode.LOAD_FAILED,
    "crashed": ReasonCode.CRASHED,
    "input_written": ReasonCode.INPUT_WRITTEN,
    "cuda_error": ReasonCode.CUDA_ERROR,
    "device": ReasonCode.CUDA_ERROR,
    "out_of_memory": ReasonCode.OUT_OF_MEMORY,
    "not_a_tensor": ReasonCode.NOT_A_TENSOR,
    "shape_mismatch": ReasonCode.SHAPE_MISMATCH,
    "dtype_mismatch": ReasonCode.DTYPE_MISMATCH,
    "output_aliases_input": ReasonCode.OUTPUT_ALIASES_INPUT,
    "stale_output": ReasonCode.STALE_OUTPUT,
    "state_changed": ReasonCode.STATE_CHANGED,
    "weights_ignored": ReasonCode.WEIGHTS_IGNORED,
    "weights_mismatch": ReasonCode.WEIGHTS_MISMATCH,
}


_KILLED = ("killed by SIGKILL ", "its supervisor was killed ")


class RunnerFailure(CandidateFault):
    """A candidate's runner died, hung or broke the protocol."""


class RunnerProcess:
    """One candidate, loaded and ready to be called."""

    def __init__(
        self, sandbox: Sandbox, plan: RunnerPlan, problem: LoadedProblem, *, ahead: RunnerStart | None = None
    ) -> None:
        """Start the runner, or take one started ahead; hand it the judge's memory and wait until the candidate is loaded.

        Raises:
            RunnerFailure: the candidate failed while it was loaded.
            EngineError: the sandbox could not be set up.
        """
        self._problem = problem
        self._plan = plan
        self._pending = b""
        self._phase = "while it was loaded"
        self._called_set: int | None = None  # of the last request, when it was for one set only
        self._spins = False
        started = time.perf_counter()
        self._start = ahead or RunnerStart(sandbox, plan, problem)
        self._socket, self._process = self._start.socket, self._start.process
        self._threads = Threads(self.pid)
        try:
            self._start.bring(plan)
            self._load()
        except BaseException:
            self.close()
            raise
        self._phase = "during a call"
        self._spins = plan.uses_gpu
        self.load_s = time.perf_counter() - started  # sandbox, program, on a GPU its context, the candidate's library

    @property
    def pid(self) -> int:
        """Return the runner's process id."""
        return self._process.host_pid

    # ------------------------------------------------------------------------------------------------------- requests

    def run(self, set_index: int) -> LoopTime:
        """Call the candidate once on a set.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        self._called_set = set_index
        return self._request(f"run {{nonce}} {set_index}", self._plan.call_timeout_s)

    def loop(self, first_set: int, calls: int) -> LoopTime:
        """Call the candidate `calls` times over rotating sets.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        self._called_set = None
        return self._request(f"loop {{nonce}} {first_set} {calls}", 2 * self._plan.call_timeout_s)

    def capture(self, first_set: int, calls: int) -> bool:
        """Record `calls` rotating calls into a CUDA graph without running them; False where they cannot be recorded.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        return self._request(f"capture {{nonce}} {first_set} {calls}", self._plan.call_timeout_s).own_s > 0

    def replay(self) -> LoopTime:
        """Run what was captured.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        return self._request("replay {nonce} 0", 2 * self._plan.call_timeout_s)

    def collect(self, set_index: int) -> LoopTime:
        """Let the runner put the kept output of a set into the set's memory.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        return self._request(f"collect {{nonce}} {set_index}", self._plan.call_timeout_s)

    def expect_silence(self) -> None:
        """Check that the runner has said nothing that it was not asked for.

        Raises:
            RunnerFailure: it has.
        """
        self._socket.setblocking(False)
        try:
            self._pending += self._socket.recv(_LONGEST_LINE)
        except BlockingIOError:
            pass
        except ConnectionResetError as error:
            raise self._ended() from error
        if self._pending:
            raise self._violation(f"an answer that nobody asked for: {_shown(self._pending)}")

    def stop(self) -> None:
        """Stop the process and wait until every thread has: none can finish an output, or take a core, now.

        Raises:
            RunnerFailure: a thread stays in the kernel for longer than a call may take.
        """
        self._process.stop()
        self._expect_rest()

    def _expect_rest(self) -> None:
        deadline = time.monotonic() + self._plan.call_timeout_s
        while not self._threads.are_at_rest():
            os.sched_yield()  # a thread may have to run on this very core to stop: 0.2 ms then, up to 4 ms without
            if time.monotonic() > deadline:
                self._process.kill()
                reason = "a thread went on in a system call after the answer: finish all work before returning"
                raise RunnerFailure(ReasonCode.BACKGROUND_WORK, reason)

    def cont(self) -> None:
        """Let the process go on."""
        self._process.cont()

    def close(self) -> None:
        """End the process with everything that it started."""
        self._start.close()
        self._threads.close()

    def __enter__(self) -> RunnerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ----------------------------------------------------------------------------------------------------------- wire

    def _setup(self) -> str:
        problem = self._problem
        library = self._start.path_of(self._plan.library)
        lines = [f"setup {WIRE_VERSION}", f"library {library}", *self._plan.lines, f"sets {problem.n_sets}"]
        for i, region in enumerate(problem.regions):
            access = "rw" if region.writable else "ro"
            lines.append(f"region {SOCKET_INSIDE + 1 + i} {region.size_bytes} {access}")
        places = {p.spec.name: p for p in problem.places}
        for spec in problem.description.signature.args:
            if spec.kind is ArgKind.SCALAR:
                lines.append(f"scalar {spec.dtype} {spec.value!r}")
            elif spec.kind is ArgKind.TENSOR:
                lines.append(_pointer_line(places[spec.name]))
        lines += [f"workspace {self._plan.workspace_bytes}", "end"]
        return "\n".join(lines) + "\n"

    def _load(self) -> None:
        try:
            if self._plan.starts_in is not None:
                self._await_import()
            self._send(self._setup())
            self._expect("mapped")
        except RunnerFailure as failure:  # no candidate is there yet whose fault it could be
            raise EngineError(f"a runner could not be made ready: {failure}") from failure
        words = self._reply(self._plan.load_timeout_s, ReasonCode.LOAD_TIMEOUT)
        if words[0] != "ready" or len(words) != 3:
            raise self._violation(f"{' '.join(words)!r} instead of ready")

    def _await_import(self) -> None:
        if self._start.is_imported:
            self.cont()  # it was started ahead, and stopped when it had done its imports
        else:
            self._expect("imported")

    def _expect(self, word: str) -> None:
        """Wait until the host says that it is this far."""
        words = self._reply(self._plan.load_timeout_s, ReasonCode.LOAD_TIMEOUT)
        if words != [word]:
            raise EngineError(f"a runner could not be made ready: it said {' '.join(words)!r}")

    def _request(self, line: str, timeout_s: float) -> LoopTime:
        """Carry out one request; the process runs while the clock does and is stopped before and after.

        Between going on and the request, or between the answer and the stop, its threads could work unmeasured: for long
        when there are enough of them to keep this process off the cores. A GPU gets no work from a thread that the
        signal holds in the kernel, so there the clock need not wait until the last one rests, which takes 0.1 to 4 ms.
        """
        self.expect_silence()
        nonce = secrets.token_hex(8)
        request = line.format(nonce=nonce) + "\n"
        start = time.perf_counter()
        self.cont()
        self._send(request)
        words = self._reply(timeout_s, ReasonCode.CALL_TIMEOUT)
        self._process.stop()
        signalled_s = time.perf_counter() - start
        self._expect_rest()
        elapsed_s = signalled_s if self._plan.uses_gpu else time.perf_counter() - start
        if words[:2] != ["done", nonce] or len(words) != 3 or not _is_number(words[2]):
            raise self._violation(f"{' '.join(words)!r} is not the answer to this request")
        return LoopTime(parent_s=elapsed_s, own_s=int(words[2]) / 1e9)

    def _send(self, text: str) -> None:
        self._socket.settimeout(self._plan.load_timeout_s)
        try:
            self._socket.sendall(text.encode())
        except (BrokenPipeError, ConnectionResetError, TimeoutError) as error:
            raise self._ended() from error

    def _reply(self, timeout_s: float, on_timeout: ReasonCode) -> list[str]:
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            try:
                data = self._receive(deadline)
            except TimeoutError as error:
                self._process.kill()
                reason = f"no answer within {timeout_s:g} s {self._phase}: stopped"
                raise RunnerFailure(on_timeout, reason) from error
            except ConnectionResetError as error:
                raise self._ended() from error
            if not data:
                raise self._ended()
            self._pending += data
            if len(self._pending) > _LONGEST_LINE:
                raise self._violation("a line without an end")
        line, _, self._pending = self._pending.partition(b"\n")
        words = line.decode(errors="replace").split()
        if not words:
            raise self._violation("an empty line")
        if words[0] == "failed":
            raise self._failed(words[1:])
        return words

    def _receive(self, deadline: float) -> bytes:
        """Return what the runner has sent, b"" when it has closed its connection.

        A call on a GPU leaves a core free to wait on: waking up takes 50 to 100 us, and not always as many.

        Raises:
            TimeoutError: nothing came until then.
        """
        if not self._spins:
            self._socket.settimeout(max(deadline - time.monotonic(), 1e-3))
            return self._socket.recv(_LONGEST_LINE)
        self._socket.setblocking(False)
        while time.monotonic() < deadline:
            try:
                return self._socket.recv(_LONGEST_LINE)
            except BlockingIOError:
                pass
        raise TimeoutError

    # ------------------------------------------------------------------------------------------------------- failures

    def _violation(self, what: str) -> RunnerFailure:
        reason = f"the candidate wrote to the host's connection: {what}"
        return RunnerFailure(ReasonCode.PROTOCOL_VIOLATED, reason)

    def _failed(self, words: list[str]) -> RunnerFailure:
        code, detail = (words[0] if words else ""), words[1:]
        if code not in _FAILED:
            return self._violation(f"failed {' '.join(words)!r}")
        if code in ("crashed", "input_written") and len(detail) == 4 and _is_number(detail[0]):
            return RunnerFailure(_FAILED[code], self._explain_fault(detail))
        return RunnerFailure(_FAILED[code], " ".join(detail) or code.replace("_", " "))

    def _explain_fault(self, detail: list[str]) -> str:
        number, access, region, offset = detail
        name = {"11": "SIGSEGV", "7": "SIGBUS"}.get(number, f"signal {number}")
        verb = "writing" if access == "write" else "reading"
        if (
            not _is_number(region)
            or not _is_number(offset.removeprefix("-"))
            or int(region) >= len(self._problem.regions)
        ):
            hint = " (a null pointer; a failed allocation?)" if offset.removeprefix("0x") in ("0", "") else ""
            return f"killed by {name} {self._phase}, {verb} address {offset}{hint}"
        places = [p for p in self._problem.places if p.region == int(region)]
        spot = locate(places, int(offset), n_sets=self._problem.n_sets, called_set=self._called_set)
        if access == "write" and spot.is_inside and not self._problem.regions[int(region)].writable:
            return f"it wrote to {spot.words}, which is read-only"
        return f"killed by {name} {self._phase}, {verb} {spot.words}"

    def _ended(self) -> RunnerFailure:
        """Explain a runner that closed its connection."""
        try:
            ended = self._process.wait(_EXIT_WAIT_S)
        except TimeoutError:
            self._process.kill()
            reason = "the candidate closed the host's connection and went on running"
            return RunnerFailure(ReasonCode.PROTOCOL_VIOLATED, reason)
        said = self._said()
        reason = f"{ended.message} {self._phase}{': ' + said if said else ''}"
        if ended.limit == "memory":
            return RunnerFailure(ReasonCode.OUT_OF_MEMORY, reason)
        if ended.limit == "wall":
            return RunnerFailure(ReasonCode.CALL_TIMEOUT, reason)
        if ended.signal == signal.SIGXCPU:
            return RunnerFailure(ReasonCode.CALL_TIMEOUT, reason)
        if ended.limit or ended.signal in (signal.SIGSYS, signal.SIGXFSZ):
            return RunnerFailure(ReasonCode.SANDBOX_VIOLATION, reason)
        if ended.signal is not None:
            return RunnerFailure(ReasonCode.CRASHED, reason)
        code = ReasonCode.CRASHED if "Sanitizer" in said or "runtime error:" in said else ReasonCode.EXITED
        how = "" if ended.code is None else "the process ended by itself: "
        return RunnerFailure(code, how + reason)

    def _said(self) -> str:
        """Return what is worth quoting of the runner's stderr: a sanitizer's finding, or its last line."""
        self._start.stderr.seek(0)
        lines = self._start.stderr.read(1 << 16).decode(errors="replace").strip().splitlines()
        found = [line for line in lines if "Sanitizer" in line or "runtime error:" in line]
        return (found or lines[-1:] or [""])[0].strip()[:300]


def _is_number(word: str) -> bool:
    """Say whether a word of the runner's is a number of nanoseconds, bytes or the like: whatever it wrote may be there."""
    return word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS


def was_killed(status: Status, reason: str) -> bool:
    """Say whether a failure may be another's doing: the out-of-memory killer's, or that of a person who cleans up.

    A candidate can also do it to itself, so it is worth one repetition and no more.
    """
    return status is Status.RUNTIME_ERROR and any(words in reason for words in _KILLED)


def _pointer_line(place: Place) -> str:
    spec = place.spec
    numbers = " ".join(str(n) for n in (*spec.shape, *spec.strides))
    head = f"pointer {spec.role.value} {place.region} {place.offset} {place.set_stride} {spec.dtype} {len(spec.shape)}"
    return f"{head} {numbers}".rstrip()


def _shown(data: bytes) -> str:
    return repr(data[:80].decode(errors="replace"))
