"""The environment of a process that a test starts."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]


def child_environment(*beside: Path, **more: str) -> dict[str, str]:
    """Return this process's environment with these variables; Python finds the package, and what lies in `beside`."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", *beside))), **more}
