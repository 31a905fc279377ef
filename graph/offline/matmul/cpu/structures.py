"""The structures of a contraction for a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ridgeline.graph.offline.composer import NOT_BUILT, STOPPED, TOO_SLOW, WRONG_RESULTS, Structures, Text
from ridgeline.tools.records.vocabulary import Category, ReasonCode


class Structure(StrEnum):
    """Names as they stand in a source's header."""

    PANELS = "packed-panels"
    DEPTHS = "cache-blocks"
    TILES = "thread-tiles"
    DOT = "bf16-dot"
    PREFETCH = "prefetch"
    SPLIT = "split-k"
    DYNAMIC = "dynamic-schedule"
    POLY = "poly-math"


TEXTS: Mapping[str, Text] = {
    Structure.PANELS: Text(
        title="Pack both operands into panels for a register-blocked product",
        phrase="packed panels",
        mechanism="Operands are copied once into narrow panels whose elements lie in the order of use. A block of sums "
        "fills the vector registers while two panels are read, so each loaded vector serves many multiplications.",
        category=Category.MEMORY_ACCESS,
        keywords=r"pack|panel|micro.?kernel|register.?(block|tile)|tile.*register",
    ),
    Structure.DEPTHS: Text(
        title="Block the contraction so that panels stay in the caches",
        phrase="cache blocks",
        mechanism="A bounded depth of the contraction is multiplied at a time: the left block stays in the second-level "
        "cache and a right panel in the first while every row panel passes over it.",
        category=Category.MEMORY_ACCESS,
        keywords=r"cache.?block|block.*cache|loop.?tiling|l1|l2|kc|depth",
    ),
    Structure.TILES: Text(
        title="Give each thread tiles of the output in both directions",
        phrase="thread tiles",
        mechanism="Tiles of rows and columns instead of whole rows: a thread's part of both operands fits its own cache "
        "and there are enough pieces to share out evenly.",
        category=Category.PARALLELISM,
        keywords=r"thread.?tile|2.?d|two.?dimension|collapse|output tile",
    ),
    Structure.DOT: Text(
        title="Multiply pairs of bf16 with the dot-product instruction",
        phrase="bf16 dot products",
        mechanism="Panels keep pairs of bf16 along the contraction; one instruction multiplies both and adds them to an "
        "fp32 sum: half the memory traffic and twice the multiplications of widened operands.",
        category=Category.COMPUTE,
        keywords=r"dot.?product|dpbf16|avx512.?bf16|bf16 instruction|vnni",
    ),
    Structure.PREFETCH: Text(
        title="Prefetch the panel ahead of the multiplications",
        phrase="prefetching",
        mechanism="Lines of the right panel are asked for several steps before they are multiplied, so they are in the "
        "first-level cache in time.",
        category=Category.LATENCY_HIDING,
        keywords=r"prefetch|ahead|latency",
    ),
    Structure.SPLIT: Text(
        title="Split the contraction among threads and add their parts",
        phrase="a split contraction",
        mechanism="A small output has too few tiles for all threads: several take a part of the contraction each and the "
        "parts are added at the end.",
        category=Category.PARALLELISM,
        keywords=r"split.?k|split the (k|contraction)|partial sums",
    ),
    Structure.DYNAMIC: Text(
        title="Hand out tiles to threads as they become free",
        phrase="a dynamic schedule",
        mechanism="Threads that are delayed by others on their core take fewer tiles; nobody waits at the end for the "
        "slowest.",
        category=Category.PARALLELISM,
        keywords=r"dynamic|schedul|chunk|balanc|guided",
    ),
    Structure.POLY: Text(
        title="Replace the epilogue's library functions with inline polynomials",
        phrase="inline polynomials",
        mechanism="exp, erf, tanh, sigmoid and log become short branch-free polynomials in vector registers; the error "
        "stays at fp32 rounding.",
        category=Category.COMPUTE,
        keywords=r"polynomial|minimax|inline (exp|erf|tanh|math)|transcendental|libm|approximat|fast (exp|erf|math)",
    ),
}


STRUCTURES = Structures(
    texts=TEXTS,
    tunable=frozenset({Structure.PANELS}),
    varying=(Structure.PREFETCH, Structure.DYNAMIC, Structure.TILES),
    pointers=(
        (NOT_BUILT, (Structure.DOT,)),
        (
            STOPPED | {ReasonCode.OUTPUT_NOT_WRITTEN},
            (Structure.SPLIT, Structure.DOT, Structure.TILES, Structure.PANELS),
        ),
        (
            WRONG_RESULTS,
            (Structure.DOT, Structure.SPLIT, Structure.POLY, Structure.DEPTHS),
        ),
        (TOO_SLOW, (Structure.DYNAMIC, Structure.SPLIT)),
    ),
    last_suspects=(
        Structure.SPLIT,
        Structure.DOT,
        Structure.PREFETCH,
        Structure.DYNAMIC,
        Structure.TILES,
        Structure.DEPTHS,
        Structure.POLY,
        Structure.PANELS,
    ),
)
