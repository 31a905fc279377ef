"""The defaults of a row-wise C++ kernel's tunables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Defaults of the tunables."""

    row_block: int = 2
    lanes: int = 4
    online_block: int = 256
    stream_tile: int = 256
    prefetch_rows: int = 1
    chunk: int = 16


VARIATIONS = (
    Choices(),
    Choices(row_block=4, lanes=2, online_block=1024, stream_tile=1024, prefetch_rows=2, chunk=64),
    Choices(row_block=1, lanes=8, online_block=64, stream_tile=64, prefetch_rows=4, chunk=4),
)
"""Each variation of a kernel starts its tunables elsewhere."""
