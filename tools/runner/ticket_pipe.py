"""The parent's end of the pipe from which a runner takes the tickets of a block."""

from __future__ import annotations

import fcntl
import os
import termios
from collections.abc import Sequence

from ridgeline.tools.records.tickets import TICKET_BYTES, encode_tickets
from ridgeline.tools.runner.failures import violation


class TicketPipe:
    """The pipe of one runner; the descriptor is somebody else's to close."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._calls = 0  # of the block whose tickets were written last; 0 once it has ended

    def write(self, sets: Sequence[int]) -> None:
        """Put a block's tickets into the pipe: 64 KiB fit.

        Raises:
            BrokenPipeError: the runner is gone.
            RunnerFailure: it filled the pipe, which a process of the same user may open for writing.
        """
        try:
            os.write(self._descriptor, encode_tickets(sets))
        except BlockingIOError as error:
            raise violation("it filled the pipe of its tickets") from error
        self._calls = len(sets)

    def expect_empty(self) -> None:
        """Check that the runner has taken every ticket, the last one too.

        Raises:
            RunnerFailure: it has not.
        """
        self._calls = 0
        if self._bytes_left():
            raise violation("an answer before the last call of a block")

    def calls_begun(self) -> int:
        """Return how many calls of the running loop have begun: their tickets were taken. 0 before and after a loop."""
        calls = self._calls  # before the look: they are written by now, or there is nothing to tell
        to_come = max(self._bytes_left() // TICKET_BYTES - 1, 0)
        return max(calls - to_come, 0)

    def _bytes_left(self) -> int:
        return int.from_bytes(fcntl.ioctl(self._descriptor, termios.FIONREAD, bytes(4)), "little")
