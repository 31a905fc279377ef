"""How much memory a measurement rotates over: the judge lays its sets out by it, the floor is computed for it."""

from __future__ import annotations

import math

MIN_SETS = 3
USUAL_SETS = 24
"""Enough for a block of 21 calls on contents not seen before, where memory allows it."""
MAX_SETS = 512
"""A kernel of 10 us needs hundreds of calls on fresh contents before a request's cost of 30 to 60 us is a few percent."""
MAX_BYTES = 2 << 30
"""Sets rotate over twice the last-level cache, within these limits and an eighth of the memory."""


def count_sets(set_bytes: int, *, cache_bytes: int, memory_bytes: int) -> int:
    """Return how many rotating sets a problem gets: more than twice the last-level cache and 24, within memory, at least 3."""
    wanted = max(math.ceil(2 * cache_bytes / max(set_bytes, 1)) + 1, USUAL_SETS)
    affordable = min(MAX_BYTES, memory_bytes // 8) // max(set_bytes, 1)
    return max(MIN_SETS, min(wanted, affordable, MAX_SETS))


def rotating_limit(*, cache_bytes: int, memory_bytes: int) -> int:
    """Return the most bytes that the sets of a problem take, but for one whose fewest sets take more."""
    return min(2 * cache_bytes, MAX_BYTES, memory_bytes // 8)


def rotating_bytes(set_bytes: int, *, cache_bytes: int, memory_bytes: int) -> int:
    """Return how much memory a measurement rotates over when one set has this size."""
    return count_sets(set_bytes, cache_bytes=cache_bytes, memory_bytes=memory_bytes) * set_bytes
