"""Writing in a run's or a suite's folder, which may come from a stranger: never through a link that lies in it.

A file that is replaced as a whole takes the link's place (`replace_file`). A file that is opened and written in place must
be no link (`refuse_links`).
"""

from __future__ import annotations

import os
from pathlib import Path

from ridgeline.checkpoints.storage.errors import storage_errors
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.machine.whole_files import remove_leftovers, whole_file

MAILBOX = "mailbox"
"""The folder in a run's folder that holds requests and their answers."""
CHECKPOINTS = "search.sqlite"
"""The file in a run's folder that holds LangGraph's checkpoints."""
_WRITTEN_IN_PLACE = (".lock", "run.log", "suite.json", MAILBOX)
_DATABASES = ("archive.sqlite", CHECKPOINTS)
_COMPANIONS = ("", "-wal", "-shm", "-journal")  # SQLite's
OPENED = (*_WRITTEN_IN_PLACE, *(name + end for name in _DATABASES for end in _COMPANIONS))
"""Names of what is opened for writing in a run's or a suite's folder; MAILBOX is a folder."""


def refuse_links(folder: Path) -> None:
    """Refuse a folder in which a file of OPENED is a symbolic link that leads out of the folder.

    Raises:
        RunError: there is such a link; the message names the link and its target.
    """
    real = folder.resolve()
    for path in (folder / name for name in OPENED):
        if path.is_symlink() and not path.resolve().is_relative_to(real):
            raise RunError(
                f"{path}: is a link to {os.readlink(path)}, and a run writes its own files only: "
                "remove the link, or put the file itself there"
            )


def no_link_opener(path: str, flags: int) -> int:
    """Return a descriptor for `open(opener=…)`; a link is not followed."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def output_place(path: Path, *, is_users: bool) -> Path:
    """Return the path at which a file for `path` is put: the link's target when the user named `path`, else `path`.

    A link in a run folder may be a stranger's, so the file takes the link's place.

    Raises:
        StorageError: `path` is a device, a pipe or a folder. Replacing one would take it from every process of the
            machine: /dev/stdout would be gone.
    """
    with storage_errors(path):
        place = path.resolve() if is_users else path
        if os.path.lexists(place) and not (place.is_symlink() or place.is_file()):
            raise StorageError(f"{path}: is not a regular file; name a file that may be replaced, or a new one")
        return place


def replace_file(path: Path, text: str, *, is_users: bool = False) -> None:
    """Put `text` at `path` in one step. A link is replaced itself, or its target when the user named `path` (`is_users`).

    Raises:
        StorageError: the file cannot be written, or `path` is no regular file; the earlier file is still there.
    """
    path = output_place(path, is_users=is_users)
    with storage_errors(path):
        if is_users:  # a folder of Ridgeline's own that is gone was removed: what it held is not made again by one file
            path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, mode=0o644) as file:
            file.write(text)
    if is_users:  # a folder of Ridgeline's own is looked through when its next session begins
        remove_leftovers(path.parent, path.name)
