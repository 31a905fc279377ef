"""The number of input/output sets that a measurement rotates over, and their memory.

The judge lays its sets out by these figures; the floor is computed for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ridgeline.tools.records.vocabulary import DeviceKind

MIN_SETS = 3
MAX_SETS = 512
"""A kernel of 10 us needs hundreds of calls on fresh contents before a request's cost is a few percent of a block. Twice as
many took twice as long to renew before each block, 90 ms on 2 cores."""
WORKING_SETS = 8
"""Memory that grading needs on a GPU, in sets of inputs and outputs: draws and mixing weights (2), results of the
reference's loop (1.5), float64 inputs, outputs and one more in between (3), a snapshot and a native output (1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRoom:
    """The room that one kind of device has for sets."""

    most_bytes: int
    share: float  # of its memory
    usual: int  # sets, where the cache does not ask for more

    def most_of(self, memory_bytes: int) -> int:
        """Return min(most_bytes, share * memory), the most that sets may take of a device's memory."""
        return min(self.most_bytes, int(memory_bytes * self.share))


ROOM = {
    DeviceKind.CPU: SetRoom(most_bytes=2 << 30, share=1 / 8, usual=24),
    DeviceKind.CUDA: SetRoom(most_bytes=32 << 30, share=1 / 4, usual=MAX_SETS),
}
"""A GPU renews so much in the time of a few blocks, and a block must be long beside the spread of a request's cost. A
CPU's usual sets are enough for a block of calls on contents not seen before; a GPU gets as many as there may be."""


def count_sets(set_bytes: int, *, kind: DeviceKind, cache_bytes: int, memory_bytes: int) -> int:
    """Return how many rotating sets a problem gets: max(MIN_SETS, min(wanted, affordable, MAX_SETS)).

    wanted = max(2 * cache / set + 1, usual), affordable = most_of(memory) / set.
    """
    room = ROOM[kind]
    wanted = max(math.ceil(2 * cache_bytes / max(set_bytes, 1)) + 1, room.usual)
    affordable = room.most_of(memory_bytes) // max(set_bytes, 1)
    return max(MIN_SETS, min(wanted, affordable, MAX_SETS))


def stay_in_cache(n_sets: int, set_bytes: int, *, cache_bytes: int) -> bool:
    """Return whether all sets together are too small to push each other out of the last-level cache."""
    return n_sets * set_bytes < 2 * cache_bytes


def rotating_limit(*, kind: DeviceKind, cache_bytes: int, memory_bytes: int) -> int:
    """Return min(2 * cache, what sets may take): the first size at which memory itself is measured.

    A problem's `rotating_bytes` may be more; they are less where MAX_SETS of its sets are less.
    """
    return min(2 * cache_bytes, ROOM[kind].most_of(memory_bytes))


def rotating_bytes(set_bytes: int, *, kind: DeviceKind, cache_bytes: int, memory_bytes: int) -> int:
    """Return how much memory a measurement rotates over when one set has this size."""
    return count_sets(set_bytes, kind=kind, cache_bytes=cache_bytes, memory_bytes=memory_bytes) * set_bytes
