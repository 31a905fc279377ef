"""How much memory a measurement rotates over: the judge lays its sets out by it, the floor is computed for it."""

from __future__ import annotations

import math

from ridgeline.tools.records.vocabulary import DeviceKind

MIN_SETS = 3
MAX_SETS = 512
"""A kernel of 10 us needs hundreds of calls on fresh contents before a request's cost of 0.1 ms is a few percent."""
MAX_BYTES = {DeviceKind.CPU: 2 << 30, DeviceKind.CUDA: 32 << 30}
SHARE = {DeviceKind.CPU: 1 / 8, DeviceKind.CUDA: 1 / 4}
"""Sets rotate over twice the last-level cache, within these limits and this share of the memory. A GPU writes 32 GiB in
25 ms, and a block of 10 to 20 ms is what makes the spread of a request's cost small beside it."""
USUAL_SETS = {DeviceKind.CPU: 24, DeviceKind.CUDA: MAX_SETS}
"""On a CPU enough for a block of 21 calls on contents not seen before, on a GPU as many as there may be."""
WORKING_SETS = 8
"""A GPU's memory that grading needs, in sets of inputs and outputs: draws and mixing weights (2), what the reference's
loop holds (1.5), float64 inputs, outputs and one more in between (3), a snapshot and a native output (1)."""


def count_sets(set_bytes: int, *, kind: DeviceKind = DeviceKind.CPU, cache_bytes: int, memory_bytes: int) -> int:
    """Return how many rotating sets a problem gets.

    More than twice the last-level cache, and on a CPU 24, on a GPU as many as memory allows; at least 3.
    """
    wanted = max(math.ceil(2 * cache_bytes / max(set_bytes, 1)) + 1, USUAL_SETS[kind])
    affordable = most_bytes(kind, memory_bytes) // max(set_bytes, 1)
    return max(MIN_SETS, min(wanted, affordable, MAX_SETS))


def stay_in_cache(n_sets: int, set_bytes: int, *, cache_bytes: int) -> bool:
    """Return whether the sets are too small, even so many, to push each other out of the last-level cache."""
    return n_sets * set_bytes < 2 * cache_bytes


def rotating_limit(*, kind: DeviceKind = DeviceKind.CPU, cache_bytes: int, memory_bytes: int) -> int:
    """Return twice the last-level cache, within the limits: the first size at which memory itself is measured.

    What a problem rotates over (`rotating_bytes`) may be more, and is less where 512 sets of it are less.
    """
    return min(2 * cache_bytes, most_bytes(kind, memory_bytes))


def most_bytes(kind: DeviceKind, memory_bytes: int) -> int:
    """Return the most that sets may take of a device's memory."""
    return min(MAX_BYTES[kind], int(memory_bytes * SHARE[kind]))


def rotating_bytes(set_bytes: int, *, kind: DeviceKind = DeviceKind.CPU, cache_bytes: int, memory_bytes: int) -> int:
    """Return how much memory a measurement rotates over when one set has this size."""
    return count_sets(set_bytes, kind=kind, cache_bytes=cache_bytes, memory_bytes=memory_bytes) * set_bytes
