"""The structures of a convolution's kernel on each target, in words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ridgeline.graph.offline.composer import Text
from ridgeline.tools.records.vocabulary import Category


class Gpu(StrEnum):
    """Structures of a CUDA kernel."""

    MMA = "tensor-cores"
    WGMMA = "warpgroup-tensor-cores"
    POOL = "pool-in-tile"
    RESIDENT = "resident-weights"
    ASYNC = "async-copy"
    VECTOR = "vector-copy"


class Cpu(StrEnum):
    """Structures of a C++ kernel."""

    FILTERS = "filter-vectors"
    POOL = "pool-rows"
    PANEL = "weight-panel"
    ROWS = "row-block"
    PREFETCH = "prefetch"
    DYNAMIC = "dynamic-schedule"


GPU_TEXTS: Mapping[str, Text] = {
    Gpu.MMA: Text(
        title="Gather the image matrix for the tensor cores (implicit GEMM, TF32)",
        phrase="tensor cores",
        mechanism="The convolution is a product of gathered input columns and repacked weights. mma.sync multiplies "
        "16 outputs x 8 filters x 8 taps at a time in TF32; the operand is read straight from the staged input rows.",
        category=Category.COMPUTE,
        keywords=r"tensor.?core|\bmma\b|tf32|implicit.?gemm|im2col|half precision",
    ),
    Gpu.WGMMA: Text(
        title="Multiply with warpgroup instructions that read the weights from shared memory",
        phrase="warpgroup tensor cores",
        mechanism="wgmma multiplies 64 outputs x all filters of a block x 8 taps asynchronously: the weights are read "
        "once for four warps, and gathering the next taps overlaps with the product of the last.",
        category=Category.COMPUTE,
        keywords=r"wgmma|warp.?group|hopper|asynchronous tensor",
    ),
    Gpu.POOL: Text(
        title="Pool inside the tile and never store the convolution's output",
        phrase="a pool inside the tile",
        mechanism="A block computes the rows that its pooling windows need, passes them through shared memory and writes "
        "only the maxima; the intermediate tensor's write and read disappear for a few rows computed twice.",
        category=Category.MEMORY_ACCESS,
        keywords=r"pool|fus|intermediate|never stor",
    ),
    Gpu.RESIDENT: Text(
        title="Keep all weights in shared memory and let blocks take tile after tile",
        phrase="resident weights",
        mechanism="As many blocks as fit stay on their multiprocessors; the repacked weights are loaded once, and only "
        "input rows are staged for each tile.",
        category=Category.MEMORY_ACCESS,
        keywords=r"resident|persistent|weights? in shared|stationary",
    ),
    Gpu.ASYNC: Text(
        title="Stage the next input rows asynchronously while this tile is multiplied",
        phrase="double buffering",
        mechanism="cp.async fills the second of two stages past the registers, zeros for the padding included, so "
        "memory works during the arithmetic.",
        category=Category.LATENCY_HIDING,
        keywords=r"cp\.?async|double.?buffer|asynchron|pipelin|prefetch|latency|overlap",
    ),
    Gpu.VECTOR: Text(
        title="Stage input rows in pieces of 16 bytes",
        phrase="16-byte copies",
        mechanism="Each row's patch starts at a multiple of four elements, so a lane moves four of them at once: a "
        "quarter of the copy instructions and of their address arithmetic.",
        category=Category.MEMORY_ACCESS,
        keywords=r"vector.?load|float4|16.?byte|128.?bit|vectori[sz]ed cop|wide load|coalesc",
    ),
}

CPU_TEXTS: Mapping[str, Text] = {
    Cpu.FILTERS: Text(
        title="Repack the weights so that filters fill the vectors",
        phrase="filter vectors",
        mechanism="Sixteen filters are one vector; a register block of filters x neighbouring outputs shares each "
        "weight vector and each broadcast input. Short output rows leave no lane empty.",
        category=Category.COMPUTE,
        keywords=r"repack|weight.?layout|filter|output.?channel|register.?block|nchwc?16",
    ),
    Cpu.POOL: Text(
        title="Pool from a rolling buffer of rows and never store the convolution's output",
        phrase="a rolling row buffer for the pool",
        mechanism="A thread keeps only the rows of the convolution that a pooling window covers, in its cache, and "
        "writes maxima; the intermediate tensor never reaches memory.",
        category=Category.MEMORY_ACCESS,
        keywords=r"pool|fus|rolling|row.?buffer|intermediate",
    ),
    Cpu.PANEL: Text(
        title="Keep a channel's weights in the first-level cache for a whole row",
        phrase="weight panels",
        mechanism="The taps of one input channel are applied to every output of the rows at hand before the next "
        "channel's weights are read; partial sums wait in a buffer.",
        category=Category.MEMORY_ACCESS,
        keywords=r"panel|cache.?block|weights? in (l1|cache)|loop.?order|input.?channel block|tap.?block",
    ),
    Cpu.ROWS: Text(
        title="Compute several output rows from one set of input rows",
        phrase="blocks of rows",
        mechanism="Neighbouring output rows share most of their input rows, which are converted, padded and laid out "
        "once for the block, and weights are read once for all of them.",
        category=Category.MEMORY_ACCESS,
        keywords=r"row.?block|several rows|input.?row|reuse|im2col",
    ),
    Cpu.PREFETCH: Text(
        title="Prefetch the next block's input rows",
        phrase="prefetching",
        mechanism="The input rows of the following block are asked for before this one is multiplied, so copying them "
        "finds them in the cache.",
        category=Category.LATENCY_HIDING,
        keywords=r"prefetch|ahead|latency",
    ),
    Cpu.DYNAMIC: Text(
        title="Hand out blocks of rows to threads as they become free",
        phrase="blocks of rows on demand",
        mechanism="Threads that are delayed by others on their core take fewer blocks; nobody waits at the end for the "
        "slowest.",
        category=Category.PARALLELISM,
        keywords=r"dynamic|schedul|chunk|balanc|guided|thread",
    ),
}
