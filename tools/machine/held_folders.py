"""Working folders that a process holds while it uses them, and what killed processes leave of them.

The holder has a lock on its folder. The lock ends with the process, however that ends, so a folder that nobody has locked
is of a process that is gone. Not covered: file systems without flock, where what is left stays.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ridgeline.tools.machine.removal import remove_tree

_PREFIX = "held-"
"""Not the names of versions that lock nothing: their folders would be taken from under them."""


@dataclass(frozen=True, slots=True)
class HeldFolder:
    """A folder that is this process's until it ends, or until `remove`."""

    path: Path
    descriptor: int

    def remove(self) -> None:
        """Remove the folder, unless it was renamed, and let go of it."""
        remove_tree(self.path)
        os.close(self.descriptor)


def hold_folder(parent: Path, kind: str) -> HeldFolder:
    """Make an empty folder in `parent` and hold it; only this user may enter it yet. `kind` is part of its name.

    Raises:
        OSError: it cannot be made.
    """
    while True:
        path = Path(tempfile.mkdtemp(dir=parent, prefix=f"{_PREFIX}{kind}-"))
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(descriptor, path):
                return HeldFolder(path, descriptor)
            os.close(descriptor)  # whoever swept took it before it was locked


def sweep_held_folders(parent: Path) -> None:
    """Remove the folders of `parent` whose holders are gone; what cannot be removed, or is in any doubt, stays."""
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):
            if name.startswith(_PREFIX):
                with contextlib.suppress(OSError):
                    _sweep(parent / name)


def _sweep(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(descriptor, path):
            remove_tree(path)
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
