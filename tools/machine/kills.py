"""Signals from outside that end one of our own processes, and the words by which a compiler tells of one."""

from __future__ import annotations

import re
import signal

_KILLED = re.compile(
    # a program's own line, before which no place in a source stands: what a source has printed has one
    r"^[\w./+-]+: [\w ]*error: (Killed|Terminated) (signal terminated program \w+|\(program \w+\))$"
    r"|^[\w./+-]+: fatal error: \w+ terminated with signal 9\b|^nvcc error +: .*\bdied due to signal 9\b"
    r"|`ptxas` failed with error code -9\b|<Signals\.SIGKILL: 9>|process pool was terminated abruptly"  # Triton, inductor
    r"|^Killed$",  # of the shell through which nvcc runs its programs
    re.MULTILINE,
)


_SENT_BY_OTHERS = (signal.SIGKILL, signal.SIGTERM)  # a fault of its own raises neither


def killed_words(returncode: int | None) -> str | None:
    """Return how a process was killed from outside; None if it was not, or (status None) if it is still there."""
    if returncode is None or -returncode not in _SENT_BY_OTHERS:
        return None
    by_whom = (
        "by somebody" if -returncode == signal.SIGTERM else "by the kernel, which was short of memory, or by somebody"
    )
    return f"was killed (signal {-returncode}): {by_whom}"


def tells_of_kill(log: str) -> bool:
    """Say whether a signal from outside ended a program of the compiler.

    A source can print the same; it fails by another error then.
    """
    return _KILLED.search(log) is not None
