"""The folders that a confined Python must be able to read to run a module of this package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from ridgeline.tools.machine.python_env import package_folder


def python_paths() -> tuple[Path, ...]:
    """Return what a confined run of this very Python must be able to read: its prefix and virtual environment."""
    return tuple(sorted({Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}))


def package_paths() -> tuple[Path, ...]:
    """Return what a confined Python must be able to read to import this package and torch."""
    package = package_folder()
    # An import lists the folder above the package, and Landlock lets nobody list a folder that was not given.
    return tuple(dict.fromkeys((*python_paths(), package.parent, (package / "tools").resolve(), *_torch_paths())))


def _torch_paths() -> Iterator[Path]:
    """Yield the folders that torch and numpy lie in, without importing them: `pip install --user` and a .pth file put them
    outside of the prefix. One that holds the user's home is left out: a candidate may not read that.
    """
    for name in ("torch", "numpy"):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            continue
        folder = Path(spec.origin).absolute().parents[1]
        if not Path.home().is_relative_to(folder):
            yield folder
