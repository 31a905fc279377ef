"""The configuration that one server is told when it begins."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ridgeline.tools.engine import Engine

PROGRAM = (sys.executable, "-P", "-m", "ridgeline")
"""The command line of this installation; `-P` keeps modules of the server's working folder out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """A server's folder of runs, and what stands behind its tools."""

    runs_dir: Path  # absolute
    keyless: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by problem, targets that need no key
    program: Sequence[str] = PROGRAM  # begins a search with the words of `ridgeline run` behind it
    engine: Engine | None = None  # judges in the place of this machine's
