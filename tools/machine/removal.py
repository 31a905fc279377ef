"""Removal of folders that a confined program could fill."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: Path) -> None:
    """Remove a folder with everything below it; what cannot be removed stays, and a missing folder is fine.

    Neither the stack, nor the length of a path, nor the number of open files grows with the depth: `shutil.rmtree`
    recurses, and a source can nest folders deeper than Python's stack. Modes do not matter and no link is followed. No
    other process may write to the folder meanwhile.
    """
    with suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(0o700)
        _empty(os.open(folder, _FOLDER))
        folder.rmdir()


@dataclass(slots=True)
class _Level:
    """One folder on the way down: how to know it again, and the names of its folders that are still there."""

    identity: tuple[int, int]
    folders: list[str]


def _empty(here: int) -> None:
    """Remove what lies in an open folder, and close it.

    Raises:
        OSError: a folder was moved meanwhile.
    """
    way = [_entered(here)]
    try:
        while True:
            level = way[-1]
            if level.folders:
                with suppress(OSError):  # one that cannot be opened stays
                    here = _moved(here, level.folders[-1])
                    way.append(_entered(here))
                    continue
                level.folders.pop()
            elif len(way) > 1:
                here = _moved(here, "..")
                way.pop()
                if _identity(here) != way[-1].identity:
                    raise OSError("a folder was moved while it was removed")
                with suppress(OSError):  # one with something that could not be removed stays
                    os.rmdir(way[-1].folders[-1], dir_fd=here)
                way[-1].folders.pop()
            else:
                return
    finally:
        os.close(here)


def _moved(here: int, name: str) -> int:
    """Return the folder `name` of an open folder, open; that one is closed."""
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def _entered(folder: int) -> _Level:
    """Remove what is no folder from an open folder, and let its folders be opened."""
    level = _Level(_identity(folder), [])
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.name, 0o700, dir_fd=folder)
                    level.folders.append(entry.name)
                else:
                    os.unlink(entry.name, dir_fd=folder)
    return level


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino
