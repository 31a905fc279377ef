"""The command and the readable folders of a confined Python that runs a module of this package."""

from __future__ import annotations

import sys
from pathlib import Path

from ridgeline.tools.machine.python_env import package_folder
from ridgeline.tools.sandbox.sandbox import python_paths


def package_paths() -> tuple[Path, ...]:
    """Return what a confined Python must be able to read to import this package and torch."""
    package = package_folder()
    # the folder above too: an import lists it, and Landlock lets nobody list what was not given
    return (*python_paths(), package.parent, (package / "tools").resolve())


def python_command(module: str, *words: str) -> tuple[str, ...]:
    """Return the command that runs a module of this room; `-P` keeps what lies in its folder from being imported."""
    return (sys.executable, "-P", "-m", f"ridgeline.tools.{module}", *words)
