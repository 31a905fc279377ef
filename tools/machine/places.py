"""Ridgeline's folders, and small JSON files whose readers see the old content or the new.

Every folder is absolute: an evaluator runs in `/`, where a relative name would mean another folder. `for_a_child` hands
a child process the same folders.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from platformdirs import site_cache_path, user_cache_path, user_data_path

from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.whole_files import remove_leftovers, whole_file
from ridgeline.tools.wording import said_by

_LOCK_FOLDERS = (Path("/run/lock/ridgeline"), Path("/tmp/ridgeline-locks"))  # noqa: S108  every user finds the same folder, $TMPDIR or not
_FOLDER_PATIENCE_S = 1.0  # between another process's mkdir and chmod
_FIRST_POLL_S = 0.001
_TRIED_BYTES = 1 << 16  # a full disk makes an empty file all the same


def home_dir() -> Path:
    """Return the folder of files that outlive runs: $RIDGELINE_HOME, else $XDG_DATA_HOME/ridgeline, else
    ~/.local/share/ridgeline."""
    return _chosen("RIDGELINE_HOME") or user_data_path("ridgeline").absolute()


def default_cache_dir() -> Path:
    """Return the folder for builds and calibration: $RIDGELINE_CACHE_DIR, else the user's cache folder.

    For root it is /var/cache/ridgeline: the sandbox drops to another user, who cannot enter /root.
    """
    default = site_cache_path if os.geteuid() == 0 else user_cache_path
    return _chosen("RIDGELINE_CACHE_DIR") or default("ridgeline").absolute()


def why_unwritable(folder: Path) -> str:
    """Return why nothing can be kept in a folder of this process's own, which is made; "" where something can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_TRIED_BYTES))
    except OSError as error:
        return said_by(error)
    return ""


def lock_dir() -> Path:
    """Return the folder of the lock files: $RIDGELINE_LOCK_DIR, else /run/lock/ridgeline, else /tmp/ridgeline-locks.

    The first folder that exists is the one that all users share. A process that cannot use it takes no other: no other
    process would see its locks there.

    Raises:
        DeviceError: the folder cannot be used.
    """
    chosen = _chosen("RIDGELINE_LOCK_DIR")
    folders = (chosen,) if chosen else _LOCK_FOLDERS
    there = [folder for folder in folders if os.path.lexists(folder)]
    faults: list[OSError] = []
    for folder in there[:1] or folders:
        try:
            make_shared_folder(folder)
        except OSError as error:
            faults.append(error)
        else:
            return folder
    unusable = (there or folders)[0]
    raise DeviceError(
        f"lock folder {unusable} {_why_unusable(unusable, faults[0])} set RIDGELINE_LOCK_DIR to one that all users of this "
        "machine share"
    )


def _why_unusable(folder: Path, fault: OSError) -> str:
    """Return what is wrong with a lock folder, and what else than another one would mend it."""
    if not os.path.lexists(folder):
        return f"cannot be made ({said_by(fault)}):"
    if folder.is_symlink():
        return "is a link, which anybody may lead elsewhere: put a folder in its place, or"
    if not folder.is_dir():
        return "is no folder:"
    why = why_unwritable(folder)
    return f"cannot be written{f' ({why})' if why else ''}: `chmod 1777 {folder}`, or"


def for_a_child(cache_dir: Path) -> dict[str, str]:
    """Return the variables that give a child process, whose current folder is another, this process's folders."""
    locks = _chosen("RIDGELINE_LOCK_DIR")
    return {"RIDGELINE_HOME": str(home_dir()), "RIDGELINE_CACHE_DIR": str(cache_dir.absolute())} | (
        {"RIDGELINE_LOCK_DIR": str(locks)} if locks else {}
    )


def make_shared_folder(folder: Path) -> None:
    """Make a folder that every user may write to, or check that it is one; another process may be making it just now.

    Raises:
        OSError: there is a folder that this process cannot write to, or none can be made.
    """
    try:
        folder.mkdir(parents=True)
        folder.chmod(0o1777)
    except FileExistsError:
        until = time.monotonic() + _FOLDER_PATIENCE_S
        while folder.is_symlink() or not os.access(folder, os.W_OK | os.X_OK):
            if time.monotonic() > until:
                raise
            time.sleep(_FIRST_POLL_S)


def replace_json(path: Path, content: dict[str, Any]) -> None:
    """Write `content` to `path` by one rename, making its folder first.

    Raises:
        OSError: the folder cannot be made or written, or the disk is full; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        json.dump(content, file, indent=1)
    remove_leftovers(path.parent)


def is_older(path: Path, seconds: float) -> bool:
    """Say whether a file was written more than `seconds` ago, or is not there."""
    try:
        return time.time() - path.stat().st_mtime > seconds
    except OSError:
        return True


def _chosen(variable: str) -> Path | None:
    """Return the folder that an environment variable names, seen from the current folder; "" names none."""
    text = os.environ.get(variable)
    return Path(text).absolute() if text else None
