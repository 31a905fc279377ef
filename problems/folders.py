"""Folders that a user names for what is to be written, looked at before anything is made in them."""

from __future__ import annotations

import os
from pathlib import Path


def why_refused(folder: Path) -> str:
    """Return why this process can make nothing in a folder, which it may have to make too; "" where it can."""
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK):
        return ""
    why = "cannot be written" if os.path.isdir(there) else "is no folder"
    return why if there == folder else f"cannot be made, because {there.absolute()} {why}"
