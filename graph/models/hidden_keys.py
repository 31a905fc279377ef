"""Keys that a server says back: replaced before anything else sees them."""

from __future__ import annotations

from collections.abc import Iterable

HIDDEN = "[key]"
SHORTEST_SECRET = 8
"""A shorter key, such as that of a local server, could be part of any word."""


def long_enough(keys: Iterable[str]) -> tuple[str, ...]:
    """Return those of these keys that can be told from words."""
    return tuple(key for key in keys if len(key) >= SHORTEST_SECRET)


def without_keys(text: str, keys: Iterable[str]) -> str:
    """Return a text in which each of these keys is replaced."""
    for key in long_enough(keys):
        text = text.replace(key, HIDDEN)
    return text
