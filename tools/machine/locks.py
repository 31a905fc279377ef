"""One measurement at a time for each device, on the whole machine: `flock` on files that all users share.

A measurement holds its device's lock exclusively; builds and verifications hold it shared. Both first pass a turnstile,
which a waiting measurement keeps closed, so that builds that keep coming cannot starve it. The kernel releases every
lock when its process dies, however it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from ridgeline.tools.machine.places import lock_dir, make_shared_folder
from ridgeline.tools.machine.waits import Waits, Watch

_FIRST_POLL_S = 0.001
_SLOWEST_POLL_S = 0.02  # a wait may end this much later than it could: small beside any measurement


class DeviceLock:
    """The lock of one device, named by its UUID ("cpu" for the processor)."""

    def __init__(self, uuid: str, folder: Path | None = None, *, waits: Waits | None = None) -> None:
        """Take `folder`, else that of all users, which is made when the lock is first held; `waits` hears of waits."""
        self._device = re.sub(r"[^A-Za-z0-9_.-]", "_", uuid) or "_"
        self._waits = waits or Waits()
        self._given = folder
        self._folder: Path | None = None

    @contextlib.asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Hold the device alone: for tasks that read a clock."""
        async with self._held(fcntl.LOCK_EX):
            yield

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Hold the device together with tasks that do not measure."""
        async with self._held(fcntl.LOCK_SH):
            yield

    @contextlib.asynccontextmanager
    async def _held(self, mode: int) -> AsyncIterator[None]:
        if self._folder is None:
            self._folder = await asyncio.to_thread(self._made)
        with _opened(self._folder / f"{self._device}.lock") as lock:
            with _opened(self._folder / f"{self._device}.turn") as turnstile:
                watch, is_had = Watch(self._device, self._waits), False
                try:
                    await _take(turnstile, fcntl.LOCK_EX, watch)
                    await _take(lock, mode, watch)
                    is_had = True
                finally:
                    watch.end(is_had=is_had)
            yield

    def _made(self) -> Path:
        """Return the locks' folder, made where it was missing."""
        if self._given is None:
            return lock_dir()
        make_shared_folder(self._given)
        return self._given


async def _take(descriptor: int, mode: int, watch: Watch) -> None:
    """Wait for the lock by asking again and again: a blocked flock call could not be cancelled."""
    pause_s = _FIRST_POLL_S
    while True:
        try:
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            watch.look(descriptor)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _SLOWEST_POLL_S)
        else:
            return


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = _open(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)  # releases the lock


def _open(path: Path) -> int:
    """Open a lock file, creating it for everyone.

    Creating and opening are two calls: in a sticky folder Linux refuses O_CREAT on a file that another user owns
    (fs.protected_regular).
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(descriptor, 0o666)  # whatever the umask
            return descriptor
    return os.open(path, flags)
