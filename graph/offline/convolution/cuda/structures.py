"""The structures of a convolution for a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ridgeline.graph.offline.composer import NOT_BUILT, STOPPED, TOO_SLOW, WRONG_RESULTS, Structures, Text
from ridgeline.tools.records.vocabulary import Category, ReasonCode


class Structure(StrEnum):
    """Names as they stand in a source's header."""

    MMA = "tensor-cores"
    WGMMA = "warpgroup-tensor-cores"
    POOL = "pool-in-tile"
    RESIDENT = "resident-weights"
    ASYNC = "async-copy"
    VECTOR = "vector-copy"


TEXTS: Mapping[str, Text] = {
    Structure.MMA: Text(
        title="Gather the image matrix for the tensor cores (implicit GEMM, TF32)",
        phrase="tensor cores",
        mechanism="The convolution is a product of gathered input columns and repacked weights. mma.sync multiplies "
        "16 outputs x 8 filters x 8 taps at a time in TF32; the operand is read straight from the staged input rows.",
        category=Category.COMPUTE,
        keywords=r"tensor.?core|\bmma\b|tf32|implicit.?gemm|im2col|half precision",
    ),
    Structure.WGMMA: Text(
        title="Multiply with warpgroup instructions that read the weights from shared memory",
        phrase="warpgroup tensor cores",
        mechanism="wgmma multiplies 64 outputs x all filters of a block x 8 taps asynchronously: the weights are read "
        "once for four warps, and gathering the next taps overlaps with the product of the last.",
        category=Category.COMPUTE,
        keywords=r"wgmma|warp.?group|hopper|asynchronous tensor",
    ),
    Structure.POOL: Text(
        title="Pool inside the tile and never store the convolution's output",
        phrase="a pool inside the tile",
        mechanism="A block computes the rows that its pooling windows need, passes them through shared memory and writes "
        "only the maxima; the intermediate tensor's write and read disappear for a few rows computed twice.",
        category=Category.MEMORY_ACCESS,
        keywords=r"pool|fus|intermediate|never stor",
    ),
    Structure.RESIDENT: Text(
        title="Keep all weights in shared memory and let blocks take tile after tile",
        phrase="resident weights",
        mechanism="As many blocks as fit stay on their multiprocessors; the repacked weights are loaded once, and only "
        "input rows are staged for each tile.",
        category=Category.MEMORY_ACCESS,
        keywords=r"resident|persistent|weights? in shared|stationary",
    ),
    Structure.ASYNC: Text(
        title="Stage the next input rows asynchronously while this tile is multiplied",
        phrase="double buffering",
        mechanism="cp.async fills the second of two stages past the registers, zeros for the padding included, so "
        "memory works during the arithmetic.",
        category=Category.LATENCY_HIDING,
        keywords=r"cp\.?async|double.?buffer|asynchron|pipelin|prefetch|latency|overlap",
    ),
    Structure.VECTOR: Text(
        title="Stage input rows in pieces of 16 bytes",
        phrase="16-byte copies",
        mechanism="Each row's patch starts at a multiple of four elements, so a lane moves four of them at once: a "
        "quarter of the copy instructions and of their address arithmetic.",
        category=Category.MEMORY_ACCESS,
        keywords=r"vector.?load|float4|16.?byte|128.?bit|vectori[sz]ed cop|wide load|coalesc",
    ),
}

STRUCTURES = Structures(
    texts=TEXTS,
    conflicts=(frozenset({Structure.MMA, Structure.WGMMA}),),  # one kernel has one of the tensor-core instructions
    tunable=frozenset(TEXTS),  # each kernel's tile may start elsewhere
    varying=(Structure.ASYNC, Structure.VECTOR, Structure.RESIDENT),
    pointers=(
        (NOT_BUILT, (Structure.RESIDENT, Structure.ASYNC)),  # what needs the most registers and shared memory
        (STOPPED | {ReasonCode.OUTPUT_NOT_WRITTEN}, (Structure.VECTOR, Structure.ASYNC, Structure.RESIDENT)),
        (WRONG_RESULTS, (Structure.WGMMA, Structure.POOL, Structure.MMA)),
        (TOO_SLOW, (Structure.WGMMA, Structure.RESIDENT)),
    ),
)
