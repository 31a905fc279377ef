"""What a confined Python of ours needs to import this package and torch: folders to read, and where to look."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import ridgeline
from ridgeline.tools.sandbox.sandbox import python_paths


def package_paths() -> tuple[Path, ...]:
    """Return what it must be able to read."""
    package = Path(ridgeline.__file__).absolute().parent
    # the folder above too: an import lists it, and Landlock lets nobody list what was not given
    return (*python_paths(), package.parent, (package / "tools").resolve())


def python_path() -> str:
    """Return its PYTHONPATH."""
    paths = [str(Path(path).absolute()) for path in sys.path if path and Path(path).is_dir()]
    return os.pathsep.join([str(Path(ridgeline.__file__).absolute().parent.parent), *paths])


def python_command(module: str, *words: str) -> tuple[str, ...]:
    """Return the command that runs one of our modules; `-P` keeps what lies in its folder from being imported."""
    return (sys.executable, "-P", "-m", f"ridgeline.tools.{module}", *words)
