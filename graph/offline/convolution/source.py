"""What the sources of both targets share: this family's native text, its tunables, and constants that are read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ridgeline.graph.offline.source_frame import choice, native_sections


def sections(file: str, names: Iterable[str]) -> str:
    """Return the named sections of a native file, in the order asked for."""
    bodies = native_sections(f"convolution/native/{file}")
    return "\n".join(bodies[name] for name in names)


def tunable(name: str, value: int, values: Iterable[int]) -> str:
    """Return the definition of a constant that a search may set to other values; with one value it stays."""
    return choice(name, value, sorted({*values, value}))


def used(definitions: list[str], text: str) -> list[str]:
    """Return the definitions whose name the text or a later definition that is kept reads, in order."""
    kept: list[str] = []
    for line in reversed(definitions):
        name = line.split("=")[0].split()[-1]
        if re.search(rf"\b{name}\b", text):
            kept.append(line)
            text += line.split("=", 1)[1]
    return kept[::-1]


def flag(*, is_set: bool) -> str:
    """Return a C++ truth value."""
    return "true" if is_set else "false"
