"""One measurement at a time for each device, on the whole machine: `flock` on files that all users share.

A measurement holds its device's lock exclusively, builds and verifications hold it shared. Both first pass a turnstile,
which a waiting measurement keeps closed: builds that keep coming cannot starve it. The kernel releases everything when
a process dies, however it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import math
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from ridgeline.tools.errors import DeviceError

logger = logging.getLogger(__name__)

TELL_AFTER_S = 30.0  # one measurement of a certificate takes about as long
_SYSTEM_FOLDER = Path("/run/lock/ridgeline")
_FIRST_POLL_S = 0.001
_SLOWEST_POLL_S = 0.02  # a wait may end this much later than it could: small beside any measurement


def lock_dir() -> Path:
    """Return the folder of the lock files: $RIDGELINE_LOCK_DIR, else /run/lock/ridgeline, else one in /tmp.

    Raises:
        DeviceError: none of them can be used.
    """
    chosen = os.environ.get("RIDGELINE_LOCK_DIR")
    folders = [Path(chosen)] if chosen else [_SYSTEM_FOLDER, Path(tempfile.gettempdir()) / "ridgeline-locks"]
    for folder in folders:
        with contextlib.suppress(OSError):
            _make_shared_folder(folder)
            return folder
    raise DeviceError(f"lock folder {folders[0]} cannot be written: set RIDGELINE_LOCK_DIR to one that can")


class DeviceLock:
    """The lock of one device, named by its UUID ("cpu" for the processor)."""

    def __init__(self, uuid: str, folder: Path | None = None) -> None:
        if folder is None:
            folder = lock_dir()
        else:
            _make_shared_folder(folder)
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", uuid) or "_"
        self._lock = folder / f"{name}.lock"
        self._turnstile = folder / f"{name}.turn"

    @contextlib.asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Hold the device alone: for everything that reads a clock."""
        async with self._held(fcntl.LOCK_EX):
            yield

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Hold the device together with others that do not measure."""
        async with self._held(fcntl.LOCK_SH):
            yield

    @contextlib.asynccontextmanager
    async def _held(self, mode: int) -> AsyncIterator[None]:
        with _opened(self._lock) as lock:
            with _opened(self._turnstile) as turnstile:
                await _take(turnstile, fcntl.LOCK_EX, self._turnstile)
                await _take(lock, mode, self._lock)
            yield


async def _take(descriptor: int, mode: int, path: Path) -> None:
    """Wait for the lock by asking again and again: a blocked flock call could not be cancelled."""
    pause_s = _FIRST_POLL_S
    tell_at = time.monotonic() + TELL_AFTER_S
    while True:
        try:
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > tell_at:
                tell_at = math.inf
                logger.info("waiting for %s, held by %s, for %.0f s", path, _holders(descriptor), TELL_AFTER_S)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _SLOWEST_POLL_S)
        else:
            return


def _holders(descriptor: int) -> str:
    """Return who holds the file's lock, as far as the kernel tells: "pid 12", "somebody" from another container."""
    inode = f":{os.fstat(descriptor).st_ino}"
    try:
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return "somebody"
    # "1: FLOCK  ADVISORY  WRITE 715 08:02:1234 0 EOF"; a waiter's line has "->" second, a foreign pid is 0
    held = [words for words in lines if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(inode)]
    pids = dict.fromkeys(words[4] for words in held if words[4].isdigit() and words[4] != "0")
    return f"pid {', '.join(pids)}" if pids else "somebody"


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


def _make_shared_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
        folder.chmod(0o1777)
    except FileExistsError:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise
