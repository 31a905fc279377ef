"""The entries of the build cache that running processes use: one locked file for each process, with a key a line.

The lock ends with its process, however that ends, so a lease that nobody holds is one of a process that is gone. A
process removes its own as it ends; what killed ones left goes when a cache is opened.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import os
import secrets
import time
import weakref
from pathlib import Path

_UNLOCKED = ".new"
_LOCKED_AFTER_S = 60.0
"""A lease is locked within microseconds of its making; one that is not by then is of a process that was killed there."""

_left: list[Path] = []
"""Leases that ended within an event loop, and go with the process."""


class Lease:
    """The keys that this process may still load; they are free when the lease is garbage or the process is gone."""

    def __init__(self, folder: Path) -> None:
        """Write nothing yet."""
        self._folder = folder
        self._descriptor: int | None = None
        self._keys: set[str] = set()

    def add(self, key: str) -> None:
        """Keep an entry from eviction. In a cache that may not be written nothing is evicted either."""
        if key in self._keys:
            return
        with contextlib.suppress(OSError):
            if self._descriptor is None:
                self._descriptor = self._begun()
            os.write(self._descriptor, f"{key}\n".encode())
            self._keys.add(key)

    def _begun(self) -> int:
        """Return the descriptor of a new lease, locked before it has a name that others look at."""
        self._folder.mkdir(exist_ok=True)
        name = self._folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        unlocked = name.with_suffix(_UNLOCKED)
        descriptor = os.open(unlocked, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        weakref.finalize(self, _end, descriptor, name, os.getpid())
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unlocked.rename(name)
        return descriptor


def _end(descriptor: int, lease: Path, process: int) -> None:
    """Remove a lease while it is locked, unless this is a child that its process forked, and close it.

    One that ends within an event loop, which that would hold up, is left to whoever opens the cache next, or to the
    process's end.
    """
    if os.getpid() == process:
        if _is_in_event_loop():
            _left.append(lease)
        else:
            _remove(lease)
    os.close(descriptor)


@atexit.register
def _remove_left() -> None:
    for lease in _left:
        _remove(lease)


def _remove(lease: Path) -> None:
    with contextlib.suppress(OSError):
        lease.unlink()


def _is_in_event_loop() -> bool:
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        return True
    return False


def leased_keys(folder: Path) -> set[str]:
    """Return the keys of all leases that are held, and remove the others."""
    keys: set[str] = set()
    for lease in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            if lease.suffix != _UNLOCKED or time.time() - lease.stat().st_mtime > _LOCKED_AFTER_S:
                keys |= _keys_of(lease)
    return keys


def _keys_of(lease: Path) -> set[str]:
    descriptor = os.open(lease, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, encoding="ascii", errors="replace") as file:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return set(file.read().split())
        lease.unlink(missing_ok=True)
        return set()
