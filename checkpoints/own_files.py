"""The files of a run's or a suite's folder: they are its own, so nothing is written through a link that lies there.

A folder may come from somebody else. What is replaced as a whole replaces the link itself (`result.replace_file`); what is
opened and written in place must be no link.
"""

from __future__ import annotations

import os
from pathlib import Path

from ridgeline.tools.errors import RunError

_WRITTEN_IN_PLACE = (".lock", "run.log", "suite.json")
_DATABASES = ("archive.sqlite", "search.sqlite")
_COMPANIONS = ("", "-wal", "-shm", "-journal")  # SQLite's
OPENED = (*_WRITTEN_IN_PLACE, *(name + end for name in _DATABASES for end in _COMPANIONS))
"""What is opened for writing in a run folder or a suite's."""


def refuse_links(folder: Path) -> None:
    """Refuse a folder in which a file that is written in place is a symbolic link that leads out of it.

    Raises:
        RunError: one is; the message names it and where it leads.
    """
    real = folder.resolve()
    for path in (folder / name for name in OPENED):
        if path.is_symlink() and not path.resolve().is_relative_to(real):
            raise RunError(
                f"{path}: is a link to {os.readlink(path)}, and a run writes its own files only: "
                "remove the link, or put the file itself there"
            )


def no_link_opener(path: str, flags: int) -> int:
    """Open for `open(opener=…)`, never through a link."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
