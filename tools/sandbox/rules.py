"""The rules of one confined program: its files, devices and limits, and the user that it runs as."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ridgeline.tools.machine.removal import remove_tree

# As root the sandbox becomes this user first. No service runs as this user: Debian and systemd leave 65520 to 65533
# unassigned. A container that maps 65536 ids has the user too.
CONFINED_UID = 65520

_DEFAULT_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "USER": "ridgeline",
    "LOGNAME": "ridgeline",
}


class Tier(StrEnum):
    """Tiers of confinement for untrusted code, strongest first."""

    BUBBLEWRAP = "A"
    LANDLOCK = "B"
    NONE = "C"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a confined program; 0 means no limit.

    The launcher watches the memory and the processes of the whole tree every 50 ms. On the CPU each process also has at
    most `memory_bytes` of private memory (RLIMIT_DATA). Shared memory that the parent passed in is not counted.
    """

    wall_s: float = 60.0
    cpu_s: int = 120  # of one process
    memory_bytes: int = 4 << 30
    file_bytes: int = 256 << 20  # of one file
    disk_bytes: int = 1 << 30  # of the whole working folder, deleted but open files included
    processes: int = 128  # threads count, as they do for the kernel
    open_files: int = 256
    cap_address_space: bool = True  # False for sanitizer builds, which reserve terabytes; CUDA turns it off by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """One command and everything that it may see.

    `workdir` is the only folder it may write to (besides a private, sized /tmp in tier A) and its current folder;
    it and every readable path keep their names inside. The environment is `env` over a small default, nothing else.
    """

    command: tuple[str, ...]
    workdir: Path | None = None
    readable: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    limits: Limits = Limits()
    allow_processes: bool = False  # a builder: True; a runner: threads only, and no second exec
    own_network: bool = False  # sockets between its own processes, for a tool that watches a candidate
    word_pipe: int | None = None  # a passed pipe that can be read four bytes at a time, and neither copied nor counted
    cpus: tuple[int, ...] = ()  # pinned to these cores when given

    def environment(self, temporary: str) -> dict[str, str]:
        """Return the whole environment of the command, whose temporary folder is `temporary`."""
        return {**_DEFAULT_ENVIRONMENT, "HOME": temporary, "TMPDIR": temporary, **self.env}


def dropped_uid() -> int | None:
    """Return the user that confined code runs as when we are root, None when we are not (or cannot be anyone else)."""
    if os.geteuid() != 0:
        return None
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = (int(part) for part in line.split())
        if first <= CONFINED_UID < first + count:
            return CONFINED_UID
    return None  # root of a user namespace that maps too few users: unprivileged on the machine itself


def claim_workdir(path: Path) -> Path:
    """Make `path` a folder that confined code may write to, and return it.

    As root, everything below `path` is given to the confined user. The candidate owns these files from then on: open them
    with O_NOFOLLOW, since a name may have become a symbolic link.
    """
    path.mkdir(parents=True, exist_ok=True)
    uid = dropped_uid()
    if uid is not None:
        for folder, _, files in os.walk(path):
            os.chown(folder, uid, uid, follow_symlinks=False)
            for name in files:
                os.chown(os.path.join(folder, name), uid, uid, follow_symlinks=False)
    return path


@contextmanager
def temporary_workdir(prefix: str) -> Iterator[Path]:
    """Yield a new folder that confined code may write to, in the system's folder for such; then remove it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield claim_workdir(folder)
    finally:
        remove_tree(folder)
