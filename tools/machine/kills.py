"""The words by which a compiler tells that a signal from outside ended one of its programs."""

from __future__ import annotations

import re

_KILLED = re.compile(
    # a program's own line, before which no place in a source stands: what a source has printed has one
    r"^[\w./+-]+: [\w ]*error: (Killed|Terminated) (signal terminated program \w+|\(program \w+\))$"
    r"|^[\w./+-]+: fatal error: \w+ terminated with signal 9\b|^nvcc error +: .*\bdied due to signal 9\b"
    r"|`ptxas` failed with error code -9\b|<Signals\.SIGKILL: 9>|process pool was terminated abruptly"  # Triton, inductor
    r"|^Killed$",  # of the shell through which nvcc runs its programs
    re.MULTILINE,
)


def tells_of_kill(log: str) -> bool:
    """Say whether a signal from outside ended a program of the compiler.

    A source can print the same; it fails by another error then.
    """
    return _KILLED.search(log) is not None
