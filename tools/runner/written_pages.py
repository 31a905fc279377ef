"""The pages of a stopped runner's memory: which of them are there (no torch here).

Fresh memory that nobody has touched reads as zeros and is not there: whoever reads it first waits for it, outside of the clock.
"""

from __future__ import annotations

import mmap
import os

_ENTRY_BYTES = 8
_ABSENT = range(64)
"""The last byte of a page's entry in /proc/PID/pagemap is one of these where it is neither in memory nor swapped out."""


class WrittenPages:
    """The page table of one runner, as far as the kernel shows it."""

    def __init__(self, pid: int) -> None:
        """Open the table of a runner that has no candidate yet; where the kernel shows none, every page counts as written."""
        try:
            self._pagemap = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._pagemap = -1

    def missing(self, address: int, size_bytes: int) -> int:
        """Return how many pages of a part of its memory are not there. Once the part has been read, by anyone, all are."""
        first = address // mmap.PAGESIZE
        count = (address + size_bytes - 1) // mmap.PAGESIZE - first + 1
        if self._pagemap < 0 or size_bytes <= 0:
            return 0
        try:
            entries = os.pread(self._pagemap, count * _ENTRY_BYTES, first * _ENTRY_BYTES)
        except (OSError, OverflowError):  # no such address: whoever reads there is told
            return 0
        last_bytes = entries[_ENTRY_BYTES - 1 :: _ENTRY_BYTES]
        return sum(last_bytes.count(byte) for byte in _ABSENT)

    def close(self) -> None:
        """Close what is open of the runner."""
        if self._pagemap >= 0:
            os.close(self._pagemap)
