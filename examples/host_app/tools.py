"""The host's own tools.py: it has nothing to do with ridgeline's and neither hides the other."""

from __future__ import annotations


def slowest(profile_ms: dict[str, float]) -> str:
    """Return the name of the module that takes the longest."""
    return max(profile_ms, key=lambda name: profile_ms[name])
