"""The open connections of a server: how many there may be, and for how long one may send no whole request.

Anybody on this machine can open sockets and send nothing, or a byte now and then. Each would have a thread of its own.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass


@dataclass(slots=True)
class _Connection:
    since: float
    is_waiting: bool = True  # for a whole request


class Connections:
    """The open connections. Of too many the one that waits longest makes room, so a new one is always served."""

    def __init__(self, most: int, longest_wait_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Allow `most` connections, each of which may go without a whole request for `longest_wait_s`."""
        self._most, self._longest_wait_s, self._clock = most, longest_wait_s, clock
        self._lock = threading.Lock()
        self._open: dict[socket.socket, _Connection] = {}

    def admit(self, new: socket.socket) -> None:
        """Count a new connection, and end another one if there is no room."""
        with self._lock:
            if len(self._open) >= self._most:
                self._end(min(self._open, key=self._rank))
            self._open[new] = _Connection(self._clock())

    def waits(self, given: socket.socket) -> None:
        """Note that a connection waits for its next request."""
        self._note(given, is_waiting=True)

    def is_served(self, given: socket.socket) -> None:
        """Note that the request of a connection has come whole."""
        self._note(given, is_waiting=False)

    def forget(self, given: socket.socket) -> None:
        """Leave out a connection that is over."""
        with self._lock:
            self._open.pop(given, None)

    def end_late(self) -> None:
        """End the connections that have waited for too long."""
        with self._lock:
            latest = self._clock() - self._longest_wait_s
            for each in [each for each, known in self._open.items() if known.is_waiting and known.since < latest]:
                self._end(each)

    def _note(self, given: socket.socket, *, is_waiting: bool) -> None:
        with self._lock:
            if given in self._open:  # it may have been ended meanwhile
                self._open[given] = _Connection(self._clock(), is_waiting)

    def _rank(self, given: socket.socket) -> tuple[bool, float]:
        known = self._open[given]
        return not known.is_waiting, known.since

    def _end(self, given: socket.socket) -> None:
        del self._open[given]
        with suppress(OSError):  # it has just been closed
            given.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it
