"""The geometry of a row program on a GPU: threads, blocks and memory as structures ask, as far as the device allows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ridgeline.graph.offline.program.ir import Load, NotCovered, RowProgram, Space
from ridgeline.graph.offline.rowwise.cuda.structures import Structure
from ridgeline.tools.machine.architecture import has_clusters
from ridgeline.tools.machine.occupancy import block_shared_bytes
from ridgeline.tools.records.dtypes import element_bytes
from ridgeline.tools.records.problem import Device

SCRATCH_BYTES = 27 << 10
"""Shared memory that rows leave to scratch and to a second block; an eighth of a block's, where that is less."""
REGISTER_FLOATS = 32 * 1024
"""Elements of a row that a block keeps in registers at most: half of the register file."""
ROOMY_FLOATS = REGISTER_FLOATS // 2
"""The preferred limit: two blocks share a multiprocessor, and one loads while the other waits."""
WARP_COLUMNS = 2048
MAX_CLUSTER = 8
MAX_COLUMNS = 1 << 30
"""Column indices are 32-bit."""
MAX_VECTOR = 8
SPLIT_COLUMNS = 2048
"""Columns of each part of a split row, whose parameters fit the first-level cache."""
MIN_SPLIT_COLUMNS = 8192
GRID_THREADS = 1024
"""Threads of a multiprocessor when the grid waits for itself: 64 registers each."""
VARIED_THREADS = {"warp": (128, 256, 64), "block": (512, 256, 1024)}


class Mode(StrEnum):
    """The threads that share a row."""

    WARP = "warp"
    BLOCK = "block"
    CLUSTER = "cluster"
    SPLIT = "split"
    GRID = "grid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Defaults of one kernel's constants."""

    mode: Mode
    threads: int
    vector: int
    parts: int  # blocks that share a row; of a cluster, a constant the tuner may change
    unroll: int
    stages: int = 0  # rows' inputs in shared memory ahead, 0 without bulk copies
    teams: int = 1  # groups of blocks with a row each, when the grid waits for itself
    row_block: int = 1  # rows that a block of a split row's kernel takes one after another
    least_parts: int = 1  # fewer do not hold the row on the chip


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The space that a composition takes on the chip for each column of a row."""

    register_slots: int = 0
    shared_slots: int = 0
    staged_bytes: int = 0

    def fits(self, width: int, floats: int, device: Device) -> bool:
        """Tell whether a block holds `width` columns, with at most `floats` elements in registers."""
        in_shared = width * (4 * self.shared_slots + self.staged_bytes)
        return self.register_slots * width <= floats and in_shared <= row_bytes(device)


def row_bytes(device: Device) -> int:
    """Return the part of a block's shared memory that rows may take: 200 KiB on Hopper."""
    most = block_shared_bytes(device.arch)
    return most - min(SCRATCH_BYTES, most // 8)


def full_loads(program: RowProgram) -> list[Load]:
    """Return the loads of the full grid whose elements lie side by side."""
    return [v.load for v in program.values() if v.load is not None and v.space is Space.FULL and v.load.col_stride == 1]


def alignment(load: Load) -> int:
    """Return the alignment of every row's start in bytes, at most 16."""
    size = element_bytes(load.dtype)
    steps = [load.offset, *(stride for _, _, stride in load.row_terms), 16]
    return min(16, size * math.gcd(*steps) & -(size * math.gcd(*steps)))


def output_alignment(program: RowProgram, dtype: str) -> int:
    """Return the alignment of the rows of an output, which follow each other without gaps, in bytes, at most 16."""
    step = element_bytes(dtype) * math.gcd(program.cols, 16)
    return min(16, step & -step)


def vectors(program: RowProgram) -> list[int]:
    """Return the numbers of elements a thread may take at once, the default first; [1] when rows are not aligned."""
    sizes = [element_bytes(o.dtype) for o in program.outputs if o.value.space & Space.COL]
    sizes += [element_bytes(load.dtype) for load in full_loads(program)]
    if not sizes:
        return [1]
    floats = [s for s in sizes if s > 1] or sizes
    widest = min(max(16 // max(floats), 1), MAX_VECTOR)
    usable = [v for v in (1, 2, 4, 8) if program.cols % v == 0]
    default = max(v for v in usable if v <= widest)
    return [default, *(v for v in usable if v != default and v > 1)]


def staged(program: RowProgram) -> list[Load]:
    """Return the loads that the bulk copy engine can fetch: rows that start at multiples of 16 bytes."""
    whole = [load for load in full_loads(program) if program.cols * element_bytes(load.dtype) % 16 == 0]
    return list(dict.fromkeys(load for load in whole if alignment(load) == 16))


def width_of(cols: int, parts: int) -> int:
    """Return the columns of each part: whole cache lines where there are several parts."""
    return cols if parts == 1 else -(-cols // (32 * parts)) * 32


def fit(program: RowProgram, structures: Iterable[str], demand: Demand, device: Device, variation: int = 0) -> Geometry:
    """Return the geometry of a composition.

    Raises:
        NotCovered: the device cannot hold a row on the chip, however many blocks share it.
    """
    chosen = frozenset(structures)
    vector = vectors(program)[0] if Structure.VECTOR in chosen else 1
    if Structure.WARP in chosen:
        threads = VARIED_THREADS["warp"][variation % 3]
        while threads > 32 and not demand.fits(threads // 32 * program.cols, REGISTER_FLOATS * threads, device):
            threads //= 2
        return Geometry(mode=Mode.WARP, threads=threads, vector=vector, parts=1, unroll=4)
    if Structure.SPLIT in chosen:
        return _split(program, device, vector, variation)
    if Structure.GRID in chosen:
        return _grid(program, demand, device, vector, variation)
    blocks = _blocks(program, chosen, demand, device, variation)
    return blocks or _grid(program, demand, device, vector, variation)


def _split(program: RowProgram, device: Device, vector: int, variation: int) -> Geometry:
    target = SPLIT_COLUMNS * (1, 2, 4)[variation % 3]
    parts = 1 << max((program.cols // target).bit_length() - 1, 0)
    enough = 4 * device.cores
    blocks = [r for r in (16, 8, 4, 2, 1) if program.rows % r == 0 and program.rows // r * parts >= enough]
    row_block = (blocks or [1])[0]
    return Geometry(mode=Mode.SPLIT, threads=256, vector=vector, parts=max(parts, 1), unroll=4, row_block=row_block)


def _grid(program: RowProgram, demand: Demand, device: Device, vector: int, variation: int) -> Geometry:
    holds = bool(demand.register_slots or demand.shared_slots or demand.staged_bytes)
    if not holds:
        threads, teams = ((512, 2), (512, 1), (256, 4))[variation % 3]
        parts = device.cores * (GRID_THREADS // threads) // teams
        return Geometry(mode=Mode.GRID, threads=threads, vector=vector, parts=parts, unroll=4, teams=teams)
    parts = device.cores
    if not demand.fits(width_of(program.cols, parts), REGISTER_FLOATS, device):
        raise NotCovered(f"rows of {program.cols} elements kept on the chip")
    stages = 1 if demand.staged_bytes else 0
    return Geometry(mode=Mode.GRID, threads=GRID_THREADS, vector=vector, parts=parts, unroll=4, stages=stages)


def _blocks(
    program: RowProgram, chosen: frozenset[str], demand: Demand, device: Device, variation: int
) -> Geometry | None:
    """Return a block, or a cluster of as many blocks as hold the row on the chip; None when no cluster does."""
    vector = vectors(program)[0] if Structure.VECTOR in chosen else 1
    options = [p for p in (1, 2, 4, MAX_CLUSTER) if p == 1 or has_clusters(device.arch)]
    fitting = [p for p in options if demand.fits(width_of(program.cols, p), REGISTER_FLOATS, device)]
    if not fitting:
        return None
    roomy = [p for p in fitting if demand.fits(width_of(program.cols, p), ROOMY_FLOATS, device)]
    parts = (roomy or fitting)[0]
    if Structure.CLUSTER in chosen:
        parts = max(parts, (4, 2, 8)[variation % 3])
    threads = _threads(program, demand, parts, vector, variation)
    mode = Mode.BLOCK if parts == 1 else Mode.CLUSTER
    stages = _stages(program, demand, parts, device)
    return Geometry(
        mode=mode, threads=threads, vector=vector, parts=parts, unroll=4, stages=stages, least_parts=fitting[0]
    )


def _stages(program: RowProgram, demand: Demand, parts: int, device: Device) -> int:
    if not demand.staged_bytes:
        return 0
    return 2 if 2 * demand.staged_bytes * width_of(program.cols, parts) <= row_bytes(device) else 1


def _threads(program: RowProgram, demand: Demand, parts: int, vector: int, variation: int) -> int:
    """Return a block size without idle warps and with at most 128 kept elements for each thread."""
    width = width_of(program.cols, parts)
    least = 64
    while least < 1024 and demand.register_slots * width > 64 * least:
        least *= 2
    most = 64
    while most < 1024 and most * vector < width:
        most *= 2
    return min(max(VARIED_THREADS["block"][variation % 3], least), max(most, least))
