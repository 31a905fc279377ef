"""The speedup that each structure of a row-wise kernel for a CPU should bring, by a simple roofline argument."""

from __future__ import annotations

from ridgeline.graph.offline.program.ir import RowProgram, Space
from ridgeline.graph.offline.program.schedule import COSTLY, plan_sweeps
from ridgeline.graph.offline.rowwise.cpu.structures import Structure


def expected_gain(structure: Structure, program: RowProgram, compulsory_bytes: int) -> float:
    """Return the speedup that a structure should bring by itself: bytes saved over bytes moved, work removed."""
    moved = max(compulsory_bytes, 1)
    written = sum(4 * program.rows * program.cols for o in program.outputs if o.value.space & Space.COL)
    sweeps = len(plan_sweeps(program).sweeps)
    per_column = [v for v in program.values() if v.space & Space.COL]
    # COSTLY counts operations; vector code does about 8 of them while one element arrives from memory.
    costly = sum(COSTLY.get(v.op, 1) for v in per_column) / 8
    return {
        Structure.KEEP: 1 + 0.2 * costly * (sweeps - 1) / max(sweeps, 1),
        Structure.POLY: 1 + min(0.12 * costly, 0.6),
        Structure.STREAM: 1 + min(written / moved, 0.5),
        Structure.MOMENTS: 1.1,
        Structure.ONLINE: 1.05 if program.cols * 4 < 1 << 15 else 1.2,
        Structure.ROWS: 1.03,
        Structure.LANES: 1.04,
        Structure.PREFETCH: 1.08,
        Structure.DYNAMIC: 1.02,
        Structure.NARROW: 1.02,
    }[structure]
