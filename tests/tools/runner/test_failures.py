"""How a runner's end is told: the code decides, and the reason says what happened when."""

from __future__ import annotations

import io
import os
import signal
import socket
from dataclasses import replace

import pytest
from tests.tools.conftest import without_tensors

from ridgeline.tools.judge.process import SharedRegion
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.connection import ConnectionClosed, ProtocolBroken, RunnerConnection
from ridgeline.tools.runner.failures import Moment, explain_end, explain_failed, last_words
from ridgeline.tools.sandbox.process import ExitStatus, Limit

CALL = Moment(phase="during a call")


@pytest.mark.parametrize(
    ("ended", "said", "code"),
    [
        (ExitStatus(code=None, limit=Limit.MEMORY), "", ReasonCode.OUT_OF_MEMORY),
        (ExitStatus(code=None, limit=Limit.WALL), "", ReasonCode.CALL_TIMEOUT),
        (ExitStatus(code=None, limit=Limit.PROCESSES), "", ReasonCode.SANDBOX_VIOLATION),
        (ExitStatus(code=None, limit=Limit.DISK), "", ReasonCode.SANDBOX_VIOLATION),
        (ExitStatus(code=None, signal=signal.SIGXCPU), "", ReasonCode.CALL_TIMEOUT),
        (ExitStatus(code=None, signal=signal.SIGSYS), "", ReasonCode.SANDBOX_VIOLATION),
        (ExitStatus(code=None, signal=signal.SIGXFSZ), "", ReasonCode.SANDBOX_VIOLATION),
        (ExitStatus(code=None, signal=signal.SIGABRT), "", ReasonCode.CRASHED),
        (ExitStatus(code=1), "==1==ERROR: AddressSanitizer: heap-buffer-overflow", ReasonCode.CRASHED),
        (ExitStatus(code=1), "kernel.cpp:3: runtime error: shift exponent", ReasonCode.CRASHED),
        (ExitStatus(code=3), "bye", ReasonCode.EXITED),
        (ExitStatus(code=None, has_lost_supervisor=True), "", ReasonCode.EXITED),
    ],
)
def test_a_silent_end_is_told_by_limit_signal_or_status(ended: ExitStatus, said: str, code: ReasonCode) -> None:
    assert explain_end(ended, said, CALL).finding.code is code


@pytest.mark.parametrize(
    ("ended", "was_killed"),
    [
        (ExitStatus(code=None, signal=signal.SIGKILL), True),
        (ExitStatus(code=None, has_lost_supervisor=True), True),
        (ExitStatus(code=None, signal=signal.SIGSEGV), False),
        (ExitStatus(code=None, limit=Limit.MEMORY), False),
        (ExitStatus(code=1, message="killed by SIGKILL"), False),
    ],
)
def test_a_kill_that_no_limit_sent_is_known_by_its_status(ended: ExitStatus, *, was_killed: bool) -> None:
    assert explain_end(ended, "killed by SIGKILL", CALL).was_killed is was_killed


@pytest.mark.parametrize(
    ("line", "code", "reason"),
    [
        ("load_failed no such symbol", ReasonCode.LOAD_FAILED, "no such symbol"),
        (
            "load_failed /cache/kernel.so: cannot map zero-fill pages",
            ReasonCode.LOAD_FAILED,
            "cannot map zero-fill pages: its static arrays are larger than the memory that it may have; make them smaller",
        ),
        ("cuda_error", ReasonCode.CUDA_ERROR, "cuda error"),
        ("crashed 11 write - 0x8", ReasonCode.CRASHED, "killed by SIGSEGV during a call, writing address 0x8"),
        ("crashed 7 read - 0x40", ReasonCode.CRASHED, "killed by SIGBUS during a call, reading address 0x40"),
        ("crashed 11 read - 0", ReasonCode.CRASHED, "reading address 0 (a null pointer; a failed allocation?)"),
        ("protocol unknown line: x", ReasonCode.PROTOCOL_VIOLATED, "'protocol unknown line: x'"),
        ("new_code x", ReasonCode.PROTOCOL_VIOLATED, "wrote to the host's connection: failed 'new_code x'"),
        ("", ReasonCode.PROTOCOL_VIOLATED, "wrote to the host's connection: failed ''"),
    ],
)
def test_a_failed_line_is_told_by_its_code(line: str, code: ReasonCode, reason: str) -> None:
    found = explain_failed(line.split(), without_tensors(), CALL).finding
    assert found.code is code
    assert found.reason.endswith(reason)


@pytest.mark.parametrize(
    "fault",
    [
        *("99999999999 write 0 8", "9 read - 0x8", "0 read - 0x8"),  # no signal that the handler catches
        *("11 write 1 8", "11 write 0 -1048577", "11 write 0 1048640", "11 write 0 99999999999"),  # not near the region
        *("11 write - 64", "11 write - -", "11 write - 0x8/bin", "11 write 0 x"),  # no address
    ],
)
def test_a_fault_that_the_handler_could_not_tell_breaks_the_protocol(fault: str) -> None:
    problem = replace(without_tensors(), regions=(SharedRegion(size_bytes=64, writable=True, fd=-1),))
    found = explain_failed(["crashed", *fault.split()], problem, CALL).finding
    assert found.code is ReasonCode.PROTOCOL_VIOLATED
    assert found.reason == f"the candidate wrote to the host's connection: failed 'crashed {fault}'"
    for near in ("-1048576", "0", "1048639"):  # the controls
        assert explain_failed(["crashed", "11", "read", "0", near], problem, CALL).finding.code is ReasonCode.CRASHED


def test_a_sanitizers_finding_is_quoted_before_the_last_line() -> None:
    assert (
        last_words(io.BytesIO(b"one\nERROR: AddressSanitizer: overflow\nthree\n"))
        == "ERROR: AddressSanitizer: overflow"
    )
    assert last_words(io.BytesIO(b"/tmp/a/kernel.cpp:3:14: runtime error: overflow\n")) == (
        "kernel.cpp:3:14: runtime error: overflow"
    )
    assert last_words(io.BytesIO(b"one\ntwo\n")) == "two"
    assert last_words(io.BytesIO(b"one\x1b]0;title\x07\n")) == "one ]0;title"
    assert last_words(io.BytesIO(b"")) == ""


def test_a_finding_of_the_address_sanitizer_has_its_access_and_its_line() -> None:
    said = (
        b"=====\n==2==ERROR: AddressSanitizer: KIND on address 0x7f25 at pc 0x7f26\nWRITE of size 4 at 0x7f25 thread T0\n"
        b"    #0 0x7f25 in memcpy (/lib/libasan.so+0x4)\n    #1 0x7f25 in fill(float*, int) /tmp/a/c0/kernel.cpp:2\n"
    )
    words = "WRITE of size 4 in fill(float*, int), kernel.cpp:2"
    assert last_words(io.BytesIO(said.replace(b"KIND", b"heap-buffer-overflow"))) == (
        f"AddressSanitizer: heap-buffer-overflow: {words}"
    )
    assert last_words(io.BytesIO(said.replace(b"KIND", b"use-after-poison"))) == (
        f"AddressSanitizer: use-after-poison (memory that is no tensor's): {words}"
    )


def test_an_exceptions_message_is_quoted_with_its_later_lines() -> None:
    said = b"terminate called after throwing an instance of 'std::runtime_error'\n  what():  no plan for\n  3 tiles\n"
    assert last_words(io.BytesIO(said)) == "what(): no plan for 3 tiles"
    assert explain_end(
        ExitStatus(code=None, signal=signal.SIGABRT, message="killed"), 'a "b"', CALL
    ).finding.reason == ('killed during a call: its process printed "a \\"b\\""')
    last = "terminate called after throwing an instance of 'int'"
    assert last_words(io.BytesIO(f"one\n{last}\n".encode())) == last


@pytest.mark.parametrize(
    ("sent", "what"), [(b"x" * 4097, "a line without an end"), (b" \n", "an empty line")], ids=["long", "empty"]
)
def test_what_is_no_line_of_words_breaks_the_protocol(sent: bytes, what: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        with pytest.raises(ProtocolBroken, match=what):
            RunnerConnection(ours, send_timeout_s=1.0).words(1.0)


@pytest.mark.parametrize("spins", [False, True])
def test_silence_a_timeout_and_a_closed_end_are_told_apart(*, spins: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        connection = RunnerConnection(ours, send_timeout_s=1.0)
        connection.spins = spins
        connection.expect_silence()
        with pytest.raises(TimeoutError):
            connection.words(0.05)
        theirs.sendall(b"done a 1\nmore")
        assert connection.words(1.0) == ["done", "a", "1"]
        with pytest.raises(ProtocolBroken, match="nobody asked for: 'more'"):
            connection.expect_silence()
        theirs.close()
        with pytest.raises(ConnectionClosed):
            connection.words(1.0)
        with pytest.raises(ConnectionClosed):
            connection.send(os.linesep)
