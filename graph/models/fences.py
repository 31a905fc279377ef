"""Fences of Markdown around a text that may hold fences itself, as a prompt shows sources, logs and a user's words."""

from __future__ import annotations

import re

_TICKS = re.compile(r"`{3,}")
_TICK = re.compile(r"`+")
_OPENS = re.compile(r"```|~~~")


def fenced(text: str, language: str = "") -> str:
    """Return a text as a block of code, in a fence longer than each in it: nothing in the text ends the block."""
    ticks = "`" * (1 + max((len(found) for found in _TICKS.findall(text)), default=2))
    return f"{ticks}{language}\n{text}\n{ticks}"


def apart(text: str) -> str:
    """Return a text as it is, or as a block of its own where a fence in it would take in what follows."""
    return f"\n\n{fenced(text, 'text')}\n" if _OPENS.search(text) else text


def quoted(text: str) -> str:
    """Return a text as code within a line: a kernel's own words may be in it, which nobody is to take for the prompt's."""
    words = " ".join(text.split())
    ticks = "`" * (1 + max((len(found) for found in _TICK.findall(words)), default=0))
    return f"{ticks} {words} {ticks}" if words[:1] == "`" or words[-1:] == "`" else f"{ticks}{words}{ticks}"
