"""The structures a row-wise kernel for a CPU can be composed of: each changes the emitted code, any set that fits composes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ridgeline.graph.offline import schedule
from ridgeline.graph.offline.arithmetic import INLINE
from ridgeline.graph.offline.ir import REDUCTIONS, RowProgram, Space


class Structure(StrEnum):
    """One way to organise the work; the value is how a source's header names it."""

    KEEP = "row-buffer"
    POLY = "poly-math"
    STREAM = "streaming-stores"
    MOMENTS = "single-pass-variance"
    ONLINE = "online-softmax"
    ROWS = "row-block"
    LANES = "accumulators"
    PREFETCH = "prefetch"
    DYNAMIC = "dynamic-schedule"
    NARROW = "narrow-vectors"


CONFLICTS: tuple[frozenset[str], ...] = (
    frozenset({Structure.ROWS, Structure.LANES}),
    frozenset({Structure.ROWS, Structure.ONLINE}),
    frozenset({Structure.DYNAMIC, Structure.ROWS}),
)
"""Both would own the same loop."""

MAX_BUFFER_BYTES = 256 * 1024
"""Row buffers live on a thread's stack and should stay in its L2 cache."""
MIN_STREAM_BYTES = 1 << 20
"""Smaller outputs stay in a cache, where a consumer finds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Defaults of the tunables; a variation starts elsewhere than its sibling."""

    row_block: int = 2
    lanes: int = 4
    online_block: int = 256
    stream_tile: int = 256
    prefetch_rows: int = 1
    chunk: int = 16


def applicable(program: RowProgram) -> tuple[Structure, ...]:
    """Return the structures that change anything for this program, in a fixed order."""
    reduces = any(o.value.space & Space.ROW and not o.value.is_leaf for o in program.outputs)
    plan = schedule.make_plan(program, keep=True)
    full_bytes = sum(4 * program.rows * program.cols for o in program.outputs if o.value.space & Space.COL)
    has_reduction = any(v.op in REDUCTIONS for v in program.values())
    tests = {
        Structure.KEEP: 0 < plan.buffers * program.cols * 4 <= MAX_BUFFER_BYTES,
        Structure.POLY: any(v.op in INLINE and v.space & Space.COL for v in program.values()),
        Structure.STREAM: full_bytes >= MIN_STREAM_BYTES,
        Structure.MOMENTS: schedule.has_moments(program),
        Structure.ONLINE: schedule.has_online_pair(program),
        Structure.ROWS: reduces and program.rows % 2 == 0 and program.cols * 8 <= MAX_BUFFER_BYTES // 4,
        Structure.LANES: has_reduction and program.cols >= 128,
        Structure.PREFETCH: program.cols >= 64,
        Structure.DYNAMIC: program.rows >= 64,
        Structure.NARROW: program.cols >= 64,
    }
    return tuple(s for s in Structure if tests[s])
