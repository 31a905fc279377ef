"""The parent's handle on a runner: the sandboxed process that holds one candidate (no torch here).

The parent believes nothing that a runner says. A reply counts when it answers the open request, and nothing else may
come. Whatever goes wrong is a RunnerFailure: data about the candidate.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import time
from collections.abc import Sequence

from ridgeline.tools.errors import EngineError, RunnerNotReadyError
from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.machine.mapped_code import mapped_code
from ridgeline.tools.machine.process_use import Threads
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.connection import ConnectionClosed, ProtocolBroken, RunnerConnection
from ridgeline.tools.runner.deadline import Deadline, loop_limit_s
from ridgeline.tools.runner.failures import Moment, RunnerFailure, explain_end, explain_failed, last_words, violation
from ridgeline.tools.runner.left_outputs import LeftOutputs, UnreadableMemory
from ridgeline.tools.runner.loop_time import LoopTime
from ridgeline.tools.runner.output_homes import OutputHomes
from ridgeline.tools.runner.resting import expect_rest
from ridgeline.tools.runner.start import RunnerPlan, RunnerStart
from ridgeline.tools.runner.ticket_pipe import TicketPipe
from ridgeline.tools.runner.wire import AnswerWord, RequestWord, done_ns, is_number, request_line
from ridgeline.tools.sandbox.sandbox import Sandbox

REST_S = 3e-4
"""Three times as long as a thread of a Python runner spins before it sleeps: see python_env.py."""
_EXIT_WAIT_S = 5.0


class RunnerProcess:
    """One candidate, loaded and ready to be called."""

    def __init__(
        self,
        sandbox: Sandbox,
        plan: RunnerPlan,
        problem: LoadedProblem,
        *,
        ahead: RunnerStart | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        """Start a runner or take `ahead`, hand over the judge's memory, and wait until the candidate is loaded.
        Waiting for the candidate is charged to `deadline`; None: for a library that is not a candidate's.

        Raises:
            RunnerFailure: the candidate failed while it was loaded.
            EngineError: the sandbox could not be set up.
        """
        self._problem = problem
        self._plan = plan
        self.deadline = deadline or Deadline(math.inf, "nothing")
        self._moment = Moment(phase="while it was loaded")
        self.was_killed = False  # SIGKILL ended it which no limit of ours sent
        started = time.perf_counter()
        self._start = ahead or RunnerStart(sandbox, plan, problem)
        self._process = self._start.process
        self._tickets = TicketPipe(self._start.tickets)
        self._connection = RunnerConnection(self._start.socket, send_timeout_s=plan.load_timeout_s)
        self._threads = Threads(self.pid)
        self._outputs: LeftOutputs | OutputHomes | None = None  # which the parent can read: on a CPU
        if plan.python is None and not plan.uses_gpu:
            self._outputs = OutputHomes.of(problem)
        self.mapped_before: frozenset[str] | None = None  # code, before it was told of its candidate; None: unknown
        try:
            self._start.bring(plan)
            self._load()
        except BaseException:
            self.close()
            raise
        self._moment = Moment(phase="during a call")
        self._connection.spins = plan.uses_gpu  # a call on a GPU leaves a core free to wait on
        self.load_s = time.perf_counter() - started  # sandbox, program, on a GPU its context, the candidate's library

    @property
    def pid(self) -> int:
        """Return the runner's process id."""
        return self._process.host_pid

    @property
    def own_files(self) -> frozenset[str]:
        """Return the paths of the program and of the candidate's library."""
        return self._plan.own_files

    # ------------------------------------------------------------------------------------------------------- requests

    def run(self, set_index: int) -> LoopTime:
        """Call the candidate once on a set.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        self._moment = Moment(phase=self._moment.phase, called_set=set_index)
        return self._request(RequestWord.RUN, set_index, timeout_s=self._plan.call_timeout_s)

    def loop(self, sets: Sequence[int], *, is_empty: bool = False) -> LoopTime:
        """Call the candidate once on each of these sets, in this order; it learns of each set when it is called.
        `is_empty` does all that a loop does but for the calls: for a trusted runner in Python.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        self._moment = Moment(phase=self._moment.phase)
        self._write_tickets(sets)
        word = RequestWord.LOOP_EMPTY if is_empty else RequestWord.LOOP
        took = self._request(word, timeout_s=loop_limit_s(len(sets), self._plan.call_timeout_s))
        self._tickets.expect_empty()
        return took

    def calls_begun(self) -> int:
        """Return how many calls of the running loop have begun: their tickets were taken. 0 before and after a loop."""
        return self._tickets.calls_begun()

    def glimpse(self, set_index: int, share: float) -> bytes:
        """Return the part at a share, 0 to 1, of what lies in a set's outputs now, b"" where the parent cannot read them."""
        return self._outputs.glimpse(set_index, share) if self._outputs else b""

    def capture(self, sets: Sequence[int]) -> bool:
        """Record a call on each of these sets into a CUDA graph without running it; False where they cannot be recorded.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        self._write_tickets(sets)
        return self._request(RequestWord.CAPTURE, timeout_s=self._plan.call_timeout_s).own_s > 0

    def replay(self) -> LoopTime:
        """Run what was captured.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        return self._request(RequestWord.REPLAY, 0, timeout_s=2 * self._plan.call_timeout_s)

    def collect(self, set_index: int) -> LoopTime:
        """Let the runner put the kept output of a set into the set's memory.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        return self._request(RequestWord.COLLECT, set_index, timeout_s=self._plan.call_timeout_s)

    @property
    def leaves_outputs(self) -> bool:
        """Return whether `bring` reads outputs where they lie; otherwise the runner has to be asked for them."""
        return isinstance(self._outputs, LeftOutputs)

    def bring(self, chosen: Sequence[int], called: Sequence[int]) -> None:
        """Put the outputs that the last calls on the chosen sets left into the sets' memory; the process stays stopped.

        Raises:
            RunnerFailure: one is not there, or an output of the block, which `called` these sets, is in no memory of its own.
        """
        if not isinstance(self._outputs, LeftOutputs):
            raise EngineError("a runner whose memory is not read was to leave its outputs there")
        self._outputs.bring(chosen, called)

    def set_scalars(self, values: Sequence[float]) -> None:
        """Give the candidate's next calls these scalars, in the order of the signature.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        self._request(RequestWord.SCALARS, *map(float, values), timeout_s=self._plan.call_timeout_s)

    def expect_silence(self) -> None:
        """Check that the runner has said nothing that it was not asked for.

        Raises:
            RunnerFailure: it has.
        """
        try:
            self._connection.expect_silence()
        except ProtocolBroken as error:
            raise violation(str(error)) from error
        except ConnectionClosed as error:
            raise self._ended() from error

    def stop(self) -> None:
        """Stop the process and wait until every thread rests: no thread can finish an output or take a core then.

        Raises:
            RunnerFailure: a thread stays in the kernel for longer than a call may take.
        """
        self._process.stop()
        self._expect_rest()

    def hold(self) -> None:
        """Stop the process in the midst of a loop, which another thread waits for; it goes on with `cont`."""
        self._process.stop()

    def cont(self) -> None:
        """Let the process go on."""
        self._process.cont()

    def rest(self) -> None:
        """Let threads that were stopped while they spun go to sleep: they would spin beside the next block's first call.

        Raises:
            RunnerFailure: as `stop` does.
        """
        self.cont()
        time.sleep(REST_S)
        self.stop()

    def close(self) -> None:
        """End the process with everything that it started."""
        self._start.close()
        self._threads.close()
        if isinstance(self._outputs, LeftOutputs):
            self._outputs.close()
        self._outputs = None

    def __enter__(self) -> RunnerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, word: RequestWord, *numbers: float, timeout_s: float) -> LoopTime:
        """Carry out one request. The process is stopped before and after, and runs while the parent's clock runs.

        The clock starts before the process goes on and ends after it stops: threads could work unmeasured otherwise, for
        long when there are enough of them to keep the parent off the cores. On a GPU the clock ends with the signal: a
        thread that the signal holds in the kernel gives the GPU no work, and waiting for its rest takes 0.1 to 4 ms.
        """
        self.expect_silence()
        nonce = secrets.token_hex(8)
        request = request_line(word, nonce, *numbers)
        start = time.perf_counter()
        self.cont()
        self._send(request)
        words = self._candidates_answer(timeout_s, ReasonCode.CALL_TIMEOUT)
        self._process.stop()
        signalled_s = time.perf_counter() - start
        self._expect_rest()
        elapsed_s = signalled_s if self._plan.uses_gpu else time.perf_counter() - start
        own_ns = done_ns(words, nonce)
        if own_ns is None:
            raise violation(f"{' '.join(words)!r} is not the answer to this request")
        return LoopTime(parent_s=elapsed_s, own_s=own_ns / 1e9)

    def _write_tickets(self, sets: Sequence[int]) -> None:
        """Put a block's tickets into the pipe; the process is stopped."""
        try:
            self._tickets.write(sets)
        except BrokenPipeError as error:
            raise self._ended() from error

    def _expect_rest(self) -> None:
        expect_rest(self._threads, self._process, self._plan.call_timeout_s, self.deadline)

    # -------------------------------------------------------------------------------------------------------- loading

    def _load(self) -> None:
        try:
            if self._plan.python is not None:
                self._await_import()
            self.mapped_before = mapped_code(self.pid)
            self._send(self._start.setup(self._plan).text())
            leaves_outputs = self._plan.python is not None and not self._plan.uses_gpu
            notes = self._expect(AnswerWord.MAPPED, numbers=int(leaves_outputs))
            if leaves_outputs:
                with contextlib.suppress(UnreadableMemory):
                    self._outputs = LeftOutputs(self.pid, notes[0], self._problem)
        except RunnerFailure as failure:  # no candidate is loaded yet
            raise RunnerNotReadyError(f"a runner could not be made ready: {failure}") from failure
        words = self._candidates_answer(self._plan.load_timeout_s, ReasonCode.LOAD_TIMEOUT)
        if words[0] != AnswerWord.READY or len(words) != 3:
            raise violation(f"{' '.join(words)!r} instead of ready")

    def _await_import(self) -> None:
        if self._start.is_imported:
            self.cont()  # the runner was started ahead, and stopped after its imports
        else:
            self._expect(AnswerWord.IMPORTED)

    def _expect(self, word: AnswerWord, *, numbers: int = 0) -> list[int]:
        """Wait for this word from the runner, and return the numbers that follow it.

        Raises:
            RunnerFailure: the runner fails first.
            EngineError: the runner says something else.
        """
        first, *rest = self._answer(self._plan.load_timeout_s, ReasonCode.LOAD_TIMEOUT)
        if first != word or len(rest) != numbers or not all(map(is_number, rest)):
            raise EngineError(f"a runner could not be made ready: it said {' '.join((first, *rest))!r}")
        return [int(each) for each in rest]

    # -------------------------------------------------------------------------------------------------------- answers

    def _send(self, text: str) -> None:
        try:
            self._connection.send(text)
        except ConnectionClosed as error:
            raise self._ended() from error

    def _candidates_answer(self, timeout_s: float, on_timeout: ReasonCode) -> list[str]:
        """Return the words of the next line, for which the candidate works, within what is left of its time.

        Raises:
            RunnerFailure: the line tells of a failure, or there is none.
        """
        left_s = self.deadline.left_s
        with self.deadline.charged():
            if timeout_s <= left_s:
                return self._answer(timeout_s, on_timeout)
            return self._answer(left_s, ReasonCode.EVALUATION_DEADLINE)

    def _answer(self, timeout_s: float, on_timeout: ReasonCode) -> list[str]:
        """Return the words of the next line.

        Raises:
            RunnerFailure: the line tells of a failure, or there is none.
        """
        try:
            words = self._connection.words(timeout_s)
        except TimeoutError as error:
            self._process.kill()
            if on_timeout is ReasonCode.EVALUATION_DEADLINE:
                raise self.deadline.passed(self._moment.phase) from error
            reason = f"no answer within {timeout_s:g} s {self._moment.phase}: stopped"
            raise RunnerFailure(on_timeout, reason) from error
        except ProtocolBroken as error:
            raise violation(str(error)) from error
        except ConnectionClosed as error:
            raise self._ended() from error
        if words[0] == AnswerWord.FAILED:
            raise explain_failed(words[1:], self._problem, self._moment)
        return words

    def _ended(self) -> RunnerFailure:
        """Explain a runner that closed its connection."""
        try:
            ended = self._process.wait(_EXIT_WAIT_S)
        except TimeoutError:
            self._process.kill()
            reason = "the candidate closed the host's connection and went on running"
            return RunnerFailure(ReasonCode.PROTOCOL_VIOLATED, reason)
        failure = explain_end(ended, last_words(self._start.stderr), self._moment)
        self.was_killed = failure.was_killed
        return failure
