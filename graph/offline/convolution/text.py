"""Convolutions' native text and tunables, the same for both devices."""

from __future__ import annotations

from collections.abc import Iterable

from ridgeline.graph.offline.text.frame import choice
from ridgeline.graph.offline.text.sections import native_sections


def sections(file: str, names: Iterable[str]) -> str:
    """Return the named sections of a native file, in the order asked for."""
    bodies = native_sections("ridgeline.graph.offline.convolution", file)
    return "\n".join(bodies[name] for name in names)


def choice_including(name: str, value: int, values: Iterable[int]) -> str:
    """Return a tunable whose values include its default, or a plain constant where there is nothing to choose."""
    return choice(name, value, sorted({*values, value}))
