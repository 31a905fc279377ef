"""The parent's end of the judge's socket."""

from __future__ import annotations

import array
import os
import socket
import threading
from collections.abc import Callable

import pytest

from ridgeline.tools.judge.connection import JudgeConnection


def answered(connection: JudgeConnection, answer: Callable[[socket.socket, bytes], None]) -> bytes:
    """Return what an exchange gives while a thread answers at the other end."""

    def serve() -> None:
        with connection.theirs as theirs:
            answer(theirs, theirs.recv(100))

    thread = threading.Thread(target=serve)
    thread.start()
    line = connection.exchange(b"ask\n", 10.0)
    thread.join()
    return line


def test_a_line_is_answered_by_one_line_however_it_is_cut() -> None:
    connection = JudgeConnection()

    def answer(theirs: socket.socket, asked: bytes) -> None:
        for part in (b"said ", asked, b"rest"):
            theirs.sendall(part)

    assert answered(connection, answer) == b"said ask"
    connection.close()


def test_descriptors_come_beside_the_answer_and_close_with_the_connection() -> None:
    connection = JudgeConnection()

    def answer(theirs: socket.socket, _asked: bytes) -> None:
        reading, writing = os.pipe()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [reading, writing]))]
        theirs.sendmsg([b"two\n"], ancillary)
        os.close(reading)
        os.close(writing)

    assert answered(connection, answer) == b"two"
    received = list(connection.descriptors)
    assert [os.fstat(fd).st_size for fd in received] == [0, 0]
    connection.close()
    assert connection.descriptors == []
    for fd in received:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_an_end_that_is_gone_answers_nothing() -> None:
    connection = JudgeConnection()
    connection.theirs.close()
    assert connection.exchange(b"ask\n", 10.0) == b""
    connection.close()


def test_an_end_that_is_silent_is_a_timeout() -> None:
    connection = JudgeConnection()
    with connection.theirs, pytest.raises(TimeoutError):
        connection.exchange(b"ask\n", 0.05)
    connection.close()
