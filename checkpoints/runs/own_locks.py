"""The locks of run folders that this process holds itself: it is not to be told to wait for its own number, or to kill it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HELD: dict[int, os.stat_result] = {}  # by descriptor


@contextmanager
def held_here(descriptor: int) -> Iterator[None]:
    """Note that this process holds the lock behind an open file, until the block ends."""
    _HELD[descriptor] = os.fstat(descriptor)
    try:
        yield
    finally:
        del _HELD[descriptor]


def is_held_here(lock: Path) -> bool:
    """Say whether a search of this process holds a lock.

    The number in its file does not say so: it may be of another machine, or of another container.
    """
    try:
        facts = lock.stat()
    except OSError:
        return False
    return any(os.path.samestat(facts, held) for held in list(_HELD.values()))
