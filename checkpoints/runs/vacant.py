"""Folders in which something new may begin, looked at before anything is made: a search's, a suite's."""

from __future__ import annotations

from pathlib import Path

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.runs.folders import LEFT_BY_A_START, refuse_held
from ridgeline.checkpoints.storage.errors import storage_errors
from ridgeline.problems.folders import why_refused
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.wording import option


def check_vacant(run_dir: Path) -> None:
    """Refuse a folder in which no new search can begin.

    Raises:
        RunError: it is a file, another process holds it, or it holds a search or other things.
        StorageError: it cannot be read, made or written.
    """
    refuse_held(run_dir)
    if not (run_dir / FILE_NAME).is_file():
        refuse_foreign(run_dir, LEFT_BY_A_START, f"run's; name a new {option('run_dir')}")
        if why := why_refused(run_dir):
            raise StorageError(f"{run_dir}: {why}; choose another {option('run_dir')}")
        return
    with Archive.open_read_only(run_dir) as archive:
        if archive.run().has_begun:
            raise holds_a_search(run_dir)


def holds_a_search(run_dir: Path) -> RunError:
    """Return the error of a new search in a folder that holds one."""
    return RunError(
        f"{run_dir}: holds a search already; pass {option('resume', True)}, or choose another {option('run_dir')}"
    )


def refuse_foreign(folder: Path, own: set[str], whose: str) -> None:
    """Refuse a folder with foreign files, among which new files would lie.

    Args:
        folder: may be missing.
        own: names that do not count.
        whose: the last words of the message: "run's; name …".

    Raises:
        RunError: the path or one above it is a file, or the folder holds something else.
    """
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise RunError(f"{path}: is a file, and no {whose}")
    if not folder.is_dir():
        return
    with storage_errors(folder):
        other = sorted({child.name for child in folder.iterdir()} - own)
    if other:
        raise RunError(f"{folder}: a folder with other things in it ({other[0]}, …), no {whose}")
