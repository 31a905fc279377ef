"""The parent's end of the judge's socket: one line asks, one line answers, descriptors may travel beside the answer."""

from __future__ import annotations

import array
import os
import socket

_MAX_DESCRIPTORS = 8


class JudgeConnection:
    """A pair of sockets: this end for the parent, `theirs` for the process that answers."""

    def __init__(self) -> None:
        self._socket, self.theirs = socket.socketpair()
        self._pending = b""
        self.descriptors: list[int] = []  # all that were received so far, in order

    def exchange(self, line: bytes, timeout_s: float) -> bytes:
        """Send one line and return the line that answers it; b"" when the other end is gone.

        Raises:
            TimeoutError: no answer came in time.
        """
        self._socket.settimeout(timeout_s)
        try:
            self._socket.sendall(line)
            return self._receive_line()
        except (BrokenPipeError, ConnectionResetError):
            return b""

    def close(self) -> None:
        """Close this end and every descriptor that was received."""
        self._socket.close()
        for fd in self.descriptors:
            os.close(fd)
        self.descriptors.clear()

    def _receive_line(self) -> bytes:
        while b"\n" not in self._pending:
            space = socket.CMSG_SPACE(_MAX_DESCRIPTORS * array.array("i").itemsize)
            data, ancillary, _, _ = self._socket.recvmsg(1 << 20, space, socket.MSG_CMSG_CLOEXEC)
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self.descriptors += array.array("i", content[: len(content) - len(content) % 4])
            if not data:
                return b""
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line
