"""The row-wise structures on a GPU as ideas in plain language, and what gain a simple roofline argument expects."""

from __future__ import annotations

from ridgeline.graph.offline.composer import Text
from ridgeline.graph.offline.cuda_geometry import (
    MAX_CLUSTER,
    MIN_SPLIT_COLUMNS,
    REGISTER_FLOATS,
    WARP_COLUMNS,
    full_loads,
)
from ridgeline.graph.offline.cuda_structures import CudaStructure as S
from ridgeline.graph.offline.ir import RowProgram, Space
from ridgeline.graph.offline.schedule import COSTLY, make_plan
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import Category

TEXTS: dict[str, Text] = {
    S.VECTOR: Text(
        title="Load and store 16 bytes per thread",
        phrase="vector loads",
        mechanism="Each thread moves several neighbouring elements by one instruction, so a warp asks for whole cache "
        "lines with a quarter of the requests, and several loads are under way before the first is used.",
        category=Category.MEMORY_ACCESS,
        keywords=r"vector|float4|16.?byte|128.?bit|wide load|coalesc",
    ),
    S.WARP: Text(
        title="Give each row to one warp",
        phrase="a warp per row",
        mechanism="Reductions become warp shuffles without any barrier or shared memory, and a block holds several "
        "rows, which short rows need to fill a multiprocessor.",
        category=Category.PARALLELISM,
        keywords=r"warp|shuffle",
    ),
    S.CLUSTER: Text(
        title="Share each row among a cluster of blocks",
        phrase="a cluster per row",
        mechanism="The blocks of a thread-block cluster take a part of the row each and exchange their partial sums "
        "through distributed shared memory, so that a long row stays on the chip and smaller blocks overlap.",
        category=Category.PARALLELISM,
        keywords=r"cluster|distributed shared|dsmem",
    ),
    S.SPLIT: Text(
        title="Split rows over many blocks and combine in a second kernel",
        phrase="split rows",
        mechanism="Each sweep is a kernel of its own whose blocks take parts of rows and leave partial sums in the "
        "workspace, so few long rows fill every multiprocessor; blocks that take the same columns of several rows load "
        "parameters once, and every other sweep runs backwards to find the end of the last one in the L2 cache.",
        category=Category.PARALLELISM,
        keywords=r"split|second kernel|two kernels|several blocks|workspace|partial",
    ),
    S.GRID: Text(
        title="Let the whole grid work on one row at a time",
        phrase="the grid on one row",
        mechanism="A cooperative launch keeps all blocks resident; they meet at a barrier in device memory after each "
        "reduction. The row of the moment is in the L2 cache, or on the chip, when it is needed again.",
        category=Category.PARALLELISM,
        keywords=r"cooperative|grid.?(sync|barrier|per|wide)|whole grid",
    ),
    S.REGISTERS: Text(
        title="Keep the row in registers between sweeps",
        phrase="the row in registers",
        mechanism="Every thread keeps its elements in registers, so device memory is read once and written once; a row "
        "that one block cannot hold is shared by the blocks of a cluster, or by the whole grid.",
        category=Category.MEMORY_ACCESS,
        keywords=r"regist|read once|keep the row|on.?chip",
    ),
    S.SHARED: Text(
        title="Keep the row in shared memory between sweeps",
        phrase="the row in shared memory",
        mechanism="Sweeps after the first read what they need from shared memory, so device memory is read once, and "
        "registers stay free for more warps; a row that one block cannot hold is shared by more of them.",
        category=Category.MEMORY_ACCESS,
        keywords=r"shared.?(mem|row)|smem|scratchpad",
    ),
    S.ASYNC: Text(
        title="Fetch the next row by bulk asynchronous copies",
        phrase="asynchronous copies",
        mechanism="Persistent blocks let the copy engine bring the inputs of their next row into shared memory, "
        "completing on a memory barrier, while they reduce and store the present one: memory never waits for "
        "arithmetic or for barriers.",
        category=Category.LATENCY_HIDING,
        keywords=r"async|bulk|tma|mbarrier|double.?buffer|prefetch|pipelin|overlap|latency",
    ),
    S.ONLINE: Text(
        title="Find the maximum and the sum of exponentials online",
        phrase="an online softmax",
        mechanism="Each thread rescales its sum when its maximum grows, and partial results merge the same way: one "
        "sweep and one meeting of the threads less.",
        category=Category.CONTROL_FLOW,
        keywords=r"online|running max|rescal|flash",
    ),
    S.MOMENTS: Text(
        title="Accumulate mean and variance in a single sweep",
        phrase="a single-sweep variance",
        mechanism="Each thread sums its elements and their squares relative to its first one; counts, means and "
        "squared distances then merge pairwise, so nothing cancels and one sweep and one meeting disappear.",
        category=Category.CONTROL_FLOW,
        keywords=r"single.?(pass|sweep)|one.?pass|welford|sum of squares|moments|variance",
    ),
    S.STREAM: Text(
        title="Mark data that is used once for early eviction",
        phrase="streaming accesses",
        mechanism="Last reads and all writes carry the evict-first hint, which leaves the L2 cache to what is read "
        "again: parameters, and rows between two sweeps.",
        category=Category.MEMORY_ACCESS,
        keywords=r"stream|evict|__ld?cs|__stcs|cache hint|non.?temporal",
    ),
    S.PERSIST: Text(
        title="Launch as many blocks as fit and loop over rows",
        phrase="persistent blocks",
        mechanism="Blocks stay for many rows instead of being started for each, which saves their launch and spreads "
        "the rows evenly.",
        category=Category.CONTROL_FLOW,
        keywords=r"persist|grid.?stride|loop over rows|resident",
    ),
    S.FAST: Text(
        title="Use the special function unit with a corrected argument",
        phrase="fast arithmetic",
        mechanism="exp becomes one base-2 instruction with the rounding of its argument corrected, and divisions become "
        "products with an approximate reciprocal; errors stay at a few units of fp32 rounding.",
        category=Category.COMPUTE,
        keywords=r"fast.?math|intrinsic|__expf|approximat|special function|reciprocal|sfu",
    ),
}


def raw_gain(structure: str, program: RowProgram, device: Device) -> float:
    """Return the speedup a structure should bring by itself: sweeps over memory it saves, idle units it fills.

    What decides among the smaller gains was measured on one H200: softmax of (4096, 65536), where one read and one
    write of memory is left as soon as registers hold the row, so that fewer sweeps, copies ahead and wider clusters
    cost more than they save; and layer norm of (16, 4194304), where split rows read again what a single pass saves
    and streaming writes leave in the cache, and the grid on one row is no faster than the split.
    """
    inputs = max(len(set(full_loads(program))), 1)
    written = sum(1 for o in program.outputs if o.value.space & Space.COL)
    sweeps = len(make_plan(program).sweeps)
    once = inputs + written
    repeated = inputs * max(sweeps, 1) + written
    row_bytes = 4 * program.cols
    is_cached = program.rows * row_bytes * once < device.cache_bytes
    idle = max(device.cores / program.rows, 1.0)
    is_long = row_bytes >= 1 << 16  # one block does not hold it comfortably
    held = 1.0 + (repeated / once - 1.0) * (0.3 if is_cached or row_bytes < 1 << 15 else 1.0)
    splits = idle > 1 and program.cols >= MIN_SPLIT_COLUMNS  # what such a kernel starts from: others replace it
    held = 1.02 if splits else held  # by the whole grid, whose meetings take what the reads took
    is_reread = splits or program.cols > MAX_CLUSTER * REGISTER_FLOATS  # no cluster holds it: a sweep is memory's time
    shares = min(idle, 4.0) if idle > 1 and not splits else 1.0
    costly = sum(COSTLY.get(v.op, 1) for v in program.values() if v.space & Space.COL)
    return {
        S.VECTOR: 1.4,
        S.WARP: 1.5 if program.cols <= WARP_COLUMNS // 4 else 1.05,
        S.CLUSTER: shares,
        S.SPLIT: 1.05 if splits else 1.0,
        S.GRID: 1.03 if splits else 1.0,
        S.REGISTERS: held,
        S.SHARED: 0.95 * held,
        S.ASYNC: 1.0 if is_long else 1.05,
        S.ONLINE: 1.1 if is_reread else 1.0 if is_long else 1.03,
        S.MOMENTS: 1.16 if is_reread else 1.04,
        S.STREAM: 1.1 if is_reread else 1.02,
        S.PERSIST: 1.01,
        S.FAST: 1.0 + min(0.002 * costly, 0.05),
    }[S(structure)]
