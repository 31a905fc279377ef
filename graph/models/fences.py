"""Fences of Markdown around a text that may hold fences itself, as a prompt shows sources, logs and a user's words."""

from __future__ import annotations

import re

_TICKS = re.compile(r"`{3,}")
_OPENS = re.compile(r"```|~~~")


def fenced(text: str, language: str = "") -> str:
    """Return a text as a block of code, in a fence longer than each in it: nothing in the text ends the block."""
    ticks = "`" * (1 + max((len(found) for found in _TICKS.findall(text)), default=2))
    return f"{ticks}{language}\n{text}\n{ticks}"


def apart(text: str) -> str:
    """Return a text as it is, or as a block of its own where a fence in it would take in what follows."""
    return f"\n\n{fenced(text, 'text')}\n" if _OPENS.search(text) else text
