"""Sections of native texts: a header in the `native/` folder of the package that owns it, one section after each `//: `."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources

POLYNOMIALS = ("ridgeline.graph.offline.text", "polynomials.h")
"""Package and file of the inline polynomials."""


def native_sections(package: str, file: str) -> dict[str, str]:
    """Return the sections of a native text by their titles."""
    text = resources.files(package).joinpath("native", file).read_text(encoding="utf-8")
    parts = (part.split("\n", 1) for part in text.split("//: ")[1:])
    return {title: body.rstrip() + "\n" for title, body in parts}


def needed_sections(names: Iterable[str], package: str = POLYNOMIALS[0], file: str = POLYNOMIALS[1]) -> str:
    """Return the named sections and those that they build on, each once, in the file's order.

    A title is a section's name, followed by the names of the sections that it builds on.
    """
    bodies: dict[str, tuple[list[str], str]] = {}
    for title, body in native_sections(package, file).items():
        name, *needed = title.split()
        bodies[name] = (needed, body)
    wanted = set(names)
    for name in reversed(list(bodies)):
        if name in wanted:
            wanted.update(bodies[name][0])
    return "\n".join(body for name, (_, body) in bodies.items() if name in wanted)
