"""The untrusted process of one `torch` or `module` candidate: `python -m ridgeline.tools.runner.worker`, sandboxed.

The process imports torch, reads the set-up from its socket, loads the candidate and calls it when told to. Process and
candidate share one address space, so the parent believes nothing that is said here: the judge compares the outputs, and
the parent keeps the time. Some mistakes can be seen in this process only (types, shared storage, global state): they end
it with a `failed` line. docs/runner-protocol.md describes the wire.
"""

from __future__ import annotations

import itertools
import os
import socket
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ridgeline.tools.modelnew.held_results import HeldResults
from ridgeline.tools.records.tickets import TicketsLost, draw_tickets
from ridgeline.tools.runner.wire import (
    SOCKET,
    TICKETS,
    AnswerWord,
    RequestWord,
    RunnerFailureCode,
    done_line,
    failed_line,
    mapped_line,
    ready_line,
)
from ridgeline.tools.runner.worker.candidates import Call, LoadedCandidate, load_candidate
from ridgeline.tools.runner.worker.checks import GlobalState, Outputs, check_apart, check_form, check_storage, equal
from ridgeline.tools.runner.worker.device import RunFailed
from ridgeline.tools.runner.worker.notes import Notes
from ridgeline.tools.runner.worker.setup import MappedSetup, read_setup

_LONGEST_MESSAGE = 300
_TORCHS_CUDA_ERROR = "CUDA error"  # what torch calls any error of the runtime
_CHANGED_EARLIER = "a call changed the tensor that an earlier call had returned"


def main() -> None:
    """Serve one candidate until the parent says quit or closes the socket."""
    warnings.simplefilter("ignore")  # torch.frombuffer warns of read-only memory, which is the point of it
    wire = socket.socket(fileno=SOCKET)
    try:
        serve(wire)
    except RunFailed as failure:
        _say(wire, failed_line(failure.code, " ".join(str(failure).split())[:_LONGEST_MESSAGE]))
        os._exit(1)
    os._exit(0)  # runs no destructor of the candidate's


def serve(wire: socket.socket) -> None:
    """Read the set-up, load the candidate and answer requests.

    Raises:
        RunFailed: the candidate did something that ends its run.
    """
    torch.ones(1 << 20).clone()  # starts torch's threads: collecting an output would, after they have been counted
    _say(wire, AnswerWord.IMPORTED)
    lines = _lines(wire)
    setup = read_setup(lines)
    notes = Notes(setup.n_sets, len(setup.outputs)) if setup.device.is_read_from_outside else None
    _say(wire, mapped_line(None if notes is None else notes.address))
    state = GlobalState()
    setup.device.watch(setup.watcher, setup.regions)
    caller = Caller(setup, load_candidate(setup, state), state, notes)
    _say(wire, ready_line(0, torch.get_num_threads()))
    with torch.no_grad():
        for line in lines:
            if line == RequestWord.QUIT:
                return
            verb, nonce, *words = line.split()
            _say(wire, done_line(nonce, caller.answer(verb, words)))


class Caller:
    """Calls the candidate and looks at what it returns."""

    def __init__(self, setup: MappedSetup, candidate: LoadedCandidate, state: GlobalState, notes: Notes | None) -> None:
        self._setup = setup
        self._outputs = setup.outputs
        self._device = setup.device
        self._candidate = candidate
        self._state = state
        self._notes = notes
        self._held: HeldResults | None = None  # by loops
        self._earlier: tuple[Outputs, Outputs] | None = None  # what the last run returned, and a copy of it

    def answer(self, verb: str, words: Sequence[str]) -> int:
        """Carry out one request and return its nanoseconds."""
        if verb == RequestWord.RUN:
            return self._run(int(words[0]))
        if verb == RequestWord.LOOP:
            return self._loop(self._candidate.calls)
        if verb == RequestWord.LOOP_EMPTY:
            return self._loop_empty()
        if verb == RequestWord.COLLECT:
            self._write(int(words[0]), self._checked(self._held_results()[int(words[0])]))
            return 0
        if verb == RequestWord.SCALARS:
            self._candidate.take_scalars([float(word) for word in words])
            return 0
        if verb == RequestWord.CAPTURE:
            return 0  # no CUDA graph: what Python does between two launches would not be in it
        raise RunFailed(RunnerFailureCode.PROTOCOL, f"unknown request {verb}")

    def _run(self, set_index: int) -> int:
        """Call once, with every check: for verification, not for timing."""
        self._device.start()
        result = self._call(self._candidate.calls[set_index])
        elapsed_ns = self._device.stop()
        outputs = self._checked(result)
        if self._earlier is None:
            self._check_weights(set_index, outputs)
        self._check_earlier(outputs)
        self._state.check("a call")
        self._write(set_index, outputs)
        return elapsed_ns

    def _loop_empty(self) -> int:
        """Do what a loop does, but return the same result in place of each call."""
        result = self._call(self._candidate.calls[0])
        return self._loop([itertools.repeat(result).__next__] * self._setup.n_sets)

    def _loop(self, bound: Sequence[Call]) -> int:
        """Call on the sets of the block's tickets, and hold the results.

        Neither this process nor the candidate knows which set comes next and which results will be looked at.
        """
        held = self._held_results()
        self._device.start()
        kept = held.begin()
        try:
            for index in draw_tickets(TICKETS):
                kept[index] = result = bound[index]()
                if self._notes is not None:  # before the next ticket is taken: see ticket_watch.py
                    self._notes.take(index, result, self._candidate.outputs)
        except TicketsLost:
            os._exit(0)  # the parent is gone
        except RunFailed:
            raise
        except Exception as error:
            raise _raised(error) from error
        return self._device.stop()

    def _held_results(self) -> HeldResults:
        """Return what holds the results of loops; before the first one its memory is touched, outside of this clock."""
        if self._held is None:
            self._held = HeldResults([views[0] for views in self._outputs], self._setup.n_sets)
        return self._held

    def _call(self, call: Call) -> Any:
        try:
            return call()
        except Exception as error:  # whatever a candidate raises is its result
            raise _raised(error) from error

    def _write(self, set_index: int, outputs: Outputs) -> None:
        self._device.start()
        for views, output in zip(self._outputs, outputs, strict=True):
            views[set_index].copy_(output)
        self._device.stop()

    def _checked(self, result: Any) -> Outputs:
        """Return the outputs when they are what the reference returns: plain tensors of its shapes, types and strides."""
        outputs = tuple(self._candidate.outputs(result))
        for views, output in zip(self._outputs, outputs, strict=True):
            check_form(output, views[0])
            check_storage(output, self._setup.regions)
        check_apart(outputs, self._setup.shared_outputs)
        return outputs

    def _check_earlier(self, outputs: Outputs) -> None:
        """Compare the last call's outputs with the copy made then, and keep this call's outputs with a copy."""
        if self._earlier is not None:
            returned, copies = self._earlier
            if not equal(returned, copies):
                raise RunFailed(RunnerFailureCode.STALE_OUTPUT, _CHANGED_EARLIER)
            addresses = {tensor.untyped_storage().data_ptr() for tensor in returned if tensor.numel()}
            if any(output.untyped_storage().data_ptr() in addresses for output in outputs if output.numel()):
                raise RunFailed(RunnerFailureCode.STALE_OUTPUT, "two calls returned the same memory")
        self._earlier = (outputs, tuple(output.clone() for output in outputs))

    def _check_weights(self, set_index: int, outputs: Outputs) -> None:
        """Call a second instance with other weights once: the result has to differ, where the reference's does."""
        other = self._candidate.with_other_weights(set_index)
        if other is None:
            return
        copies = tuple(output.clone() for output in outputs)
        others = self._checked(self._call(other))
        if not equal(outputs, copies):
            raise RunFailed(RunnerFailureCode.STALE_OUTPUT, _CHANGED_EARLIER)
        if self._setup.weights_show and equal(others, copies):
            raise RunFailed(RunnerFailureCode.WEIGHTS_IGNORED, "other weights give the same output")


def _raised(error: Exception) -> RunFailed:
    text = f"the call of forward raised {type(error).__name__}: {error}"
    if isinstance(error, torch.OutOfMemoryError):
        return RunFailed(RunnerFailureCode.OUT_OF_MEMORY, text)
    return RunFailed(
        RunnerFailureCode.CUDA_ERROR if _TORCHS_CUDA_ERROR in str(error) else RunnerFailureCode.CRASHED, text
    )


def _lines(wire: socket.socket) -> Iterator[str]:
    pending = b""
    while True:
        line, separator, rest = pending.partition(b"\n")
        if separator:
            pending = rest
            yield line.decode()
            continue
        data = wire.recv(1 << 16)
        if not data:
            os._exit(0)  # the parent is gone
        pending += data


def _say(wire: socket.socket, line: str) -> None:
    wire.sendall(line.encode(errors="backslashreplace") + b"\n")  # an exception's words may hold surrogates


if __name__ == "__main__":
    main()
