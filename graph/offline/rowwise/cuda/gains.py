"""The speedup that each structure of a row-wise kernel for a GPU should bring, by a simple roofline argument."""

from __future__ import annotations

from ridgeline.graph.offline.program.ir import RowProgram, Space
from ridgeline.graph.offline.program.schedule import COSTLY, plan_sweeps
from ridgeline.graph.offline.rowwise.cuda.geometry import (
    MAX_CLUSTER,
    MIN_SPLIT_COLUMNS,
    REGISTER_FLOATS,
    WARP_COLUMNS,
    full_loads,
)
from ridgeline.graph.offline.rowwise.cuda.structures import Structure
from ridgeline.tools.records.problem import Device


def expected_gain(structure: str, program: RowProgram, device: Device) -> float:
    """Return the speedup that a structure should bring by itself: sweeps over memory saved, idle units filled.

    The order of the smaller gains was measured on one H200. Softmax of (4096, 65536): with the row in registers one
    read and one write of memory are left, and fewer sweeps, copies ahead and wider clusters cost more than they save.
    Layer norm of (16, 4194304): split rows are read again, so a single pass and streaming writes pay; the grid on one
    row is no faster than the split.
    """
    inputs = max(len(set(full_loads(program))), 1)
    written = sum(1 for o in program.outputs if o.value.space & Space.COL)
    sweeps = len(plan_sweeps(program).sweeps)
    once = inputs + written
    repeated = inputs * max(sweeps, 1) + written
    row_bytes = 4 * program.cols
    is_cached = program.rows * row_bytes * once < device.cache_bytes
    idle = max(device.cores / program.rows, 1.0)
    is_long = row_bytes >= 1 << 16  # one block does not hold it comfortably
    held = 1.0 + (repeated / once - 1.0) * (0.3 if is_cached or row_bytes < 1 << 15 else 1.0)
    splits = idle > 1 and program.cols >= MIN_SPLIT_COLUMNS  # the base is split; other structures replace the split
    held = 1.02 if splits else held  # the whole grid holds the row; its meetings take as long as the saved reads
    # no cluster holds the row: each sweep reads memory
    is_reread = splits or program.cols > MAX_CLUSTER * REGISTER_FLOATS
    shares = min(idle, 4.0) if idle > 1 and not splits else 1.0
    costly = sum(COSTLY.get(v.op, 1) for v in program.values() if v.space & Space.COL)
    return {
        Structure.VECTOR: 1.4,
        Structure.WARP: 1.5 if program.cols <= WARP_COLUMNS // 4 else 1.05,
        Structure.CLUSTER: shares,
        Structure.SPLIT: 1.05 if splits else 1.0,
        Structure.GRID: 1.03 if splits else 1.0,
        Structure.REGISTERS: held,
        Structure.SHARED: 0.95 * held,
        Structure.ASYNC: 1.0 if is_long else 1.05,
        Structure.ONLINE: 1.1 if is_reread else 1.0 if is_long else 1.03,
        Structure.MOMENTS: 1.16 if is_reread else 1.04,
        Structure.STREAM: 1.1 if is_reread else 1.02,
        Structure.PERSIST: 1.01,
        Structure.FAST: 1.0 + min(0.002 * costly, 0.05),
    }[Structure(structure)]
