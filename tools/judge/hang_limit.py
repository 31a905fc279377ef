"""A limit on the user's own code, told by the line that did not end (runs in the judge; read in its parent).

The watchdog is the interpreter's own thread in C: it also ends a loop that never lets another Python thread run, one
inside a native library, and code that catches every exception.
"""

from __future__ import annotations

import contextlib
import faulthandler
import re
import sys
from collections.abc import Iterator

SHORTEST_S = 60.0
"""An import of a large package on a busy machine takes half of it."""

_CALLS = 2  # of what a kernel may take for one call
_FIRED = "Timeout ("  # how faulthandler's report begins


def reference_limit_s(call_timeout_s: float) -> float:
    """Return how long one step of a reference may take: its import, its model's making, inputs, one forward."""
    return max(SHORTEST_S, _CALLS * call_timeout_s)


@contextlib.contextmanager
def hang_limit(seconds: float) -> Iterator[None]:
    """End this process with status 1 when the block takes longer, after a report on its standard error."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or 2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def hung_line(log: str, file_name: str) -> str | None:
    """Return "line 7 in forward", where `file_name` was when a limit passed; None when none did.

    "" when the report names no line of that file.
    """
    _, fired, report = log.rpartition(_FIRED)
    if not fired:
        return None
    where = re.search(rf'File "{re.escape(file_name)}", line (\d+) in (\S+)', report)
    return f"line {where[1]} in {where[2]}" if where else ""
