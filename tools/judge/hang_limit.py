"""A limit on the time that the user's own code may take, and the line of it that did not end.

The judge sets the limit, its parent reads the report. The watchdog is the interpreter's own thread in C. So it also ends
a loop that never lets another Python thread run, a loop inside a native library, and code that catches every exception.
"""

from __future__ import annotations

import contextlib
import faulthandler
import re
from collections.abc import Iterator
from dataclasses import dataclass

SHORTEST_S = 60.0
"""An import of a large package on a busy machine takes half of it."""

_CALLS = 2  # of what a kernel may take for one call
_STANDARD_ERROR = 2
_REPORTED = re.compile(r'^(Timeout \(|  File ")', re.MULTILINE)
"""The watchdog's words; of a long report the end is kept."""


def reference_limit_s(call_timeout_s: float) -> float:
    """Return how long one step of a reference may take: its import, its model's making, inputs, one forward."""
    return max(SHORTEST_S, _CALLS * call_timeout_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class HangLimit:
    """Time limit of one step, and the descriptor that gets a report when the step takes longer."""

    seconds: float = SHORTEST_S
    report_fd: int = _STANDARD_ERROR

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """End this process with status 1 when the block takes longer, after the report."""
        faulthandler.dump_traceback_later(self.seconds, exit=True, file=self.report_fd)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def hung_line(report: str, file_name: str) -> str | None:
    """Return "line 7 in forward", where `file_name` was when a limit passed; None when none did.

    "" when the report names no line of that file. Other words are a reference's, which may write to any descriptor.
    """
    if not _REPORTED.search(report):
        return None
    where = re.search(rf'File "{re.escape(file_name)}", line (\d+) in (\S+)', report)
    return f"line {where[1]} in {where[2]}" if where else ""
