"""Folders as a hostile program leaves them."""

from __future__ import annotations

import os
from pathlib import Path


def nest_folders(folder: Path, depth: int) -> None:
    """Make `folder` with folders nested `depth` deep in it, each with a file; deeper than a path can name."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=here))
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
