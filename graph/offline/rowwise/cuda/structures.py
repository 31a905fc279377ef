"""The structures of a row-wise kernel for a GPU: in words and in conflict."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from enum import StrEnum

from ridgeline.graph.offline.composer import STOPPED, TOO_SLOW, WRONG_RESULTS, Structures, Text
from ridgeline.tools.records.vocabulary import Category


class Structure(StrEnum):
    """Names as they stand in a source's header."""

    VECTOR = "vector-loads"
    WARP = "warp-per-row"
    CLUSTER = "cluster-per-row"
    SPLIT = "split-rows"
    GRID = "grid-per-row"
    REGISTERS = "register-row"
    SHARED = "shared-row"
    ASYNC = "async-copies"
    ONLINE = "online-softmax"
    MOMENTS = "single-pass-variance"
    STREAM = "streaming-accesses"
    PERSIST = "persistent-blocks"
    FAST = "fast-math"


TEXTS: Mapping[str, Text] = {
    Structure.VECTOR: Text(
        title="Load and store 16 bytes per thread",
        phrase="vector loads",
        mechanism="Each thread moves several neighbouring elements by one instruction, so a warp asks for whole cache "
        "lines with a quarter of the requests, and several loads are under way before the first is used.",
        category=Category.MEMORY_ACCESS,
        keywords=r"vector|float4|16.?byte|128.?bit|wide load|coalesc",
    ),
    Structure.WARP: Text(
        title="Give each row to one warp",
        phrase="a warp per row",
        mechanism="Reductions become warp shuffles without any barrier or shared memory, and a block holds several "
        "rows, which short rows need to fill a multiprocessor.",
        category=Category.PARALLELISM,
        keywords=r"warp|shuffle",
    ),
    Structure.CLUSTER: Text(
        title="Share each row among a cluster of blocks",
        phrase="a cluster per row",
        mechanism="The blocks of a thread-block cluster take a part of the row each and exchange their partial sums "
        "through distributed shared memory, so that a long row stays on the chip and smaller blocks overlap.",
        category=Category.PARALLELISM,
        keywords=r"cluster|distributed shared|dsmem",
    ),
    Structure.SPLIT: Text(
        title="Split rows over many blocks and combine in a second kernel",
        phrase="split rows",
        mechanism="Each sweep is a kernel of its own whose blocks take parts of rows and leave partial sums in the "
        "workspace, so few long rows fill every multiprocessor; blocks that take the same columns of several rows load "
        "parameters once, and every other sweep runs backwards to find the end of the last one in the L2 cache.",
        category=Category.PARALLELISM,
        keywords=r"split|second kernel|two kernels|several blocks|workspace|partial",
    ),
    Structure.GRID: Text(
        title="Let the whole grid work on one row at a time",
        phrase="the grid on one row",
        mechanism="A cooperative launch keeps all blocks resident; they meet at a barrier in device memory after each "
        "reduction. The row of the moment is in the L2 cache, or on the chip, when it is needed again.",
        category=Category.PARALLELISM,
        keywords=r"cooperative|grid.?(sync|barrier|per|wide)|whole grid",
    ),
    Structure.REGISTERS: Text(
        title="Keep the row in registers between sweeps",
        phrase="the row in registers",
        mechanism="Every thread keeps its elements in registers, so device memory is read once and written once; a row "
        "that one block cannot hold is shared by the blocks of a cluster, or by the whole grid.",
        category=Category.MEMORY_ACCESS,
        keywords=r"regist|read once|keep the row|on.?chip",
    ),
    Structure.SHARED: Text(
        title="Keep the row in shared memory between sweeps",
        phrase="the row in shared memory",
        mechanism="Sweeps after the first read what they need from shared memory, so device memory is read once, and "
        "registers stay free for more warps; a row that one block cannot hold is shared by more of them.",
        category=Category.MEMORY_ACCESS,
        keywords=r"shared.?(mem|row)|smem|scratchpad",
    ),
    Structure.ASYNC: Text(
        title="Fetch the next row by bulk asynchronous copies",
        phrase="asynchronous copies",
        mechanism="Persistent blocks let the copy engine bring the inputs of their next row into shared memory, "
        "completing on a memory barrier, while they reduce and store the present one: memory never waits for "
        "arithmetic or for barriers.",
        category=Category.LATENCY_HIDING,
        keywords=r"async|bulk|tma|mbarrier|double.?buffer|prefetch|pipelin|overlap|latency",
    ),
    Structure.ONLINE: Text(
        title="Find the maximum and the sum of exponentials online",
        phrase="an online softmax",
        mechanism="Each thread rescales its sum when its maximum grows, and partial results merge the same way: one "
        "sweep and one meeting of the threads less.",
        category=Category.CONTROL_FLOW,
        keywords=r"online|running max|rescal|flash",
    ),
    Structure.MOMENTS: Text(
        title="Accumulate mean and variance in a single sweep",
        phrase="a single-sweep variance",
        mechanism="Each thread sums its elements and their squares relative to its first one; counts, means and "
        "squared distances then merge pairwise, so nothing cancels and one sweep and one meeting disappear.",
        category=Category.CONTROL_FLOW,
        keywords=r"single.?(pass|sweep)|one.?pass|welford|sum of squares|moments|variance",
    ),
    Structure.STREAM: Text(
        title="Mark data that is used once for early eviction",
        phrase="streaming accesses",
        mechanism="Last reads and all writes carry the evict-first hint, which leaves the L2 cache to what is read "
        "again: parameters, and rows between two sweeps.",
        category=Category.MEMORY_ACCESS,
        keywords=r"stream|evict|__ld?cs|__stcs|cache hint|non.?temporal",
    ),
    Structure.PERSIST: Text(
        title="Launch as many blocks as fit and loop over rows",
        phrase="persistent blocks",
        mechanism="Blocks stay for many rows instead of being started for each, which saves their launch and spreads "
        "the rows evenly.",
        category=Category.CONTROL_FLOW,
        keywords=r"persist|grid.?stride|loop over rows|resident",
    ),
    Structure.FAST: Text(
        title="Use the special function unit with a corrected argument",
        phrase="fast arithmetic",
        mechanism="exp becomes one base-2 instruction with the rounding of its argument corrected, and divisions become "
        "products with an approximate reciprocal; errors stay at a few units of fp32 rounding.",
        category=Category.COMPUTE,
        keywords=r"fast.?math|intrinsic|__expf|approximat|special function|reciprocal|sfu",
    ),
}

CONFLICTS: tuple[frozenset[str], ...] = (
    # one group of threads shares a row
    *(
        frozenset(pair)
        for pair in itertools.combinations((Structure.WARP, Structure.CLUSTER, Structure.SPLIT, Structure.GRID), 2)
    ),
    # nothing of a row outlives a kernel
    *(
        frozenset({Structure.SPLIT, s})
        for s in (Structure.REGISTERS, Structure.SHARED, Structure.ASYNC, Structure.PERSIST)
    ),
    # one place for the row
    frozenset({Structure.REGISTERS, Structure.SHARED}),
    frozenset({Structure.SHARED, Structure.ASYNC}),
    # a bulk copy serves a whole block, not a warp; a grid on one row is persistent already
    frozenset({Structure.WARP, Structure.ASYNC}),
    frozenset({Structure.GRID, Structure.PERSIST}),
)

STRUCTURES = Structures(
    texts=TEXTS,
    conflicts=CONFLICTS,
    tunable=frozenset(
        {
            Structure.VECTOR,
            Structure.CLUSTER,
            Structure.SPLIT,
            Structure.GRID,
            Structure.ASYNC,
            Structure.WARP,
            Structure.REGISTERS,
            Structure.SHARED,
        }
    ),
    varying=(Structure.STREAM, Structure.PERSIST, Structure.FAST),
    pointers=(
        (
            STOPPED,  # by an address or by a launch: whatever fits is tried, so addresses first
            (
                Structure.ASYNC,
                Structure.GRID,
                Structure.CLUSTER,
                Structure.VECTOR,
                Structure.SHARED,
                Structure.REGISTERS,
                Structure.SPLIT,
            ),
        ),
        (TOO_SLOW, (Structure.GRID, Structure.ASYNC, Structure.CLUSTER)),
        (WRONG_RESULTS, (Structure.MOMENTS, Structure.ONLINE, Structure.FAST)),
    ),
    last_suspects=(
        Structure.ASYNC,
        Structure.GRID,
        Structure.CLUSTER,
        Structure.SHARED,
        Structure.REGISTERS,
        Structure.MOMENTS,
        Structure.ONLINE,
        Structure.FAST,
        Structure.PERSIST,
        Structure.STREAM,
        Structure.SPLIT,
        Structure.WARP,
        Structure.VECTOR,
    ),
)
