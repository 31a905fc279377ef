"""The parent's end of a runner's socket: lines in both directions, and silence where nothing was asked."""

from __future__ import annotations

import socket
import time

from ridgeline.tools.runner.wire import LONGEST_LINE_BYTES


class ConnectionClosed(Exception):
    """The runner closed its end, or reads no more: its process has ended or is about to."""


class ProtocolBroken(Exception):
    """The runner sent something that is no answer; the message says what."""


class RunnerConnection:
    """One runner's socket. The candidate can write to it too, so no line is believed to be the runner's."""

    def __init__(self, wire: socket.socket, *, send_timeout_s: float) -> None:
        self.spins = False
        """Wait without sleeping: waking up takes 50 to 100 us, and not always as many."""
        self._socket = wire
        self._send_timeout_s = send_timeout_s
        self._pending = b""

    def send(self, text: str) -> None:
        """Send a text whole.

        Raises:
            ConnectionClosed: the runner does not take it.
        """
        self._socket.settimeout(self._send_timeout_s)
        try:
            self._socket.sendall(text.encode())
        except (BrokenPipeError, ConnectionResetError, TimeoutError) as error:
            raise ConnectionClosed from error

    def words(self, timeout_s: float) -> list[str]:
        """Return the words of the next line, of which there is at least one.

        Raises:
            TimeoutError: there is no line within `timeout_s`.
            ConnectionClosed: the runner closed its end.
            ProtocolBroken: the line is empty, or has no end.
        """
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            try:
                data = self._receive(deadline)
            except ConnectionResetError as error:
                raise ConnectionClosed from error
            if not data:
                raise ConnectionClosed
            self._pending += data
            if len(self._pending) > LONGEST_LINE_BYTES:
                raise ProtocolBroken("a line without an end")
        line, _, self._pending = self._pending.partition(b"\n")
        words = line.decode(errors="replace").split()
        if not words:
            raise ProtocolBroken("an empty line")
        return words

    def expect_silence(self) -> None:
        """Check that the runner has sent nothing.

        Raises:
            ConnectionClosed: the runner closed its end.
            ProtocolBroken: it has.
        """
        self._socket.setblocking(False)
        try:
            self._pending += self._socket.recv(LONGEST_LINE_BYTES)
        except BlockingIOError:
            pass
        except ConnectionResetError as error:
            raise ConnectionClosed from error
        if self._pending:
            said = repr(self._pending[:80].decode(errors="replace"))
            raise ProtocolBroken(f"an answer that nobody asked for: {said}")

    def _receive(self, deadline: float) -> bytes:
        """Return what the runner has sent, b"" when it has closed its end.

        Raises:
            TimeoutError: nothing came until then.
        """
        if not self.spins:
            self._socket.settimeout(max(deadline - time.monotonic(), 1e-3))
            return self._socket.recv(LONGEST_LINE_BYTES)
        self._socket.setblocking(False)
        while time.monotonic() < deadline:
            try:
                return self._socket.recv(LONGEST_LINE_BYTES)
            except BlockingIOError:
                pass
        raise TimeoutError
