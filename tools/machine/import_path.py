"""Where a trusted Python process of ours finds this package and everything that its parent imports."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import ridgeline


def import_path() -> str:
    """Return its PYTHONPATH: this package's folder first, then this process's own absolute ones."""
    package = str(Path(ridgeline.__file__).resolve().parent.parent)
    return os.pathsep.join([package, *(path for path in sys.path if path and Path(path).is_absolute())])
