"""Build recipes: files, command, and the key that covers all that decides the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ridgeline.tools.build.flags import base_flags, profile_flags, requested_flags, sanitizer_flags
from ridgeline.tools.build.toolchain import Toolchain
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.records.evaluation_limit import LONGEST_BUILD_S

RECIPE_VERSION = 3  # raise it when the command changes in a way that the flags do not show
HEADER = "problem.h"
WALL_PER_CPU = 3.0  # the machine may be busy with measurements and other builds


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One build, ready to run in any folder."""

    key: str
    entry: str  # what the source has to define, in one line
    flags: tuple[str, ...]  # what decides the code, without paths
    files: dict[str, str]
    command: tuple[str, ...]  # run in the folder of the files, leaves LIBRARY there
    readable: tuple[Path, ...]
    pool: str
    cpu_s: int  # of one process of the compiler
    memory_bytes: int
    environment: Mapping[str, str] = field(default_factory=dict)
    runs_source: bool = False  # the command is Python that runs the source, and no compiler: it can end its own build

    @property
    def wall_s(self) -> float:
        """Return how long the whole may take by the clock."""
        return min(self.cpu_s * WALL_PER_CPU, LONGEST_BUILD_S)


def source_flags(task: CompileTask) -> tuple[str, ...]:
    """Return base and requested flags; the sanitizers' come last, so that no `// flags:` line undoes them."""
    device = task.problem.device
    sanitizers = sanitizer_flags(device.kind) if task.sanitized else ()
    lines = profile_flags(device.kind) if task.profiled else ()
    return base_flags(device) + requested_flags(task.candidate.source) + sanitizers + lines


def recipe_key(task: CompileTask, toolchain: Toolchain, files: dict[str, str], flags: tuple[str, ...]) -> str:
    """Return the key of a build: a hash of its files, its flags, the compiler's version and the device's architecture."""
    device = task.problem.device
    parts = [RECIPE_VERSION, sorted(files.items()), flags, toolchain.version, device.kind.value, device.arch]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def refused_key(task: CompileTask, toolchain: Toolchain) -> str:
    """Return the key of a build that is refused before it has a recipe; its source may be no text."""
    return hashlib.sha256(f"refused\n{toolchain.version}\n{task.candidate.source!r}".encode()).hexdigest()
