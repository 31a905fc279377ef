"""The structures of a contraction for a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ridgeline.graph.offline.composer import NOT_BUILT, STOPPED, TOO_SLOW, WRONG_RESULTS, Composition, Structures, Text
from ridgeline.tools.records.vocabulary import Category


class Structure(StrEnum):
    """Names as they stand in a source's header."""

    VECTOR = "vector-loads"
    ASYNC = "async-copies"
    GROUPED = "grouped-blocks"
    TENSOR = "tensor-cores"
    WARPGROUP = "warpgroup-mma"
    PERSISTENT = "persistent-blocks"
    WIDE = "wide-stores"
    SPLIT = "split-k"
    CLUSTER = "cluster-multicast"


TEXTS: Mapping[str, Text] = {
    Structure.WARPGROUP: Text(
        title="Multiply with warpgroup-wide tensor core instructions fed by the copy engine",
        phrase="warpgroup products",
        mechanism="One warpgroup only asks the bulk tensor copy engine for swizzled panels several stages ahead; two "
        "others issue wgmma on them straight from shared memory, announced by barriers in shared memory. No thread "
        "spends instructions on addresses or copies, and the sums stay in registers.",
        category=Category.COMPUTE,
        keywords=r"wgmma|warp.?group|tma|tensor memory|copy engine|bulk|producer|speciali[sz]",
    ),
    Structure.TENSOR: Text(
        title="Multiply with warp-wide tensor core instructions",
        phrase="tensor cores",
        mechanism="Fragments of both panels are loaded by ldmatrix from padded shared memory and multiplied by mma.sync "
        "with fp32 sums: an order of magnitude more multiplications a cycle than the ordinary units.",
        category=Category.COMPUTE,
        keywords=r"tensor.?core|mma|ldmatrix|tf32|half precision",
    ),
    Structure.ASYNC: Text(
        title="Copy later panels asynchronously while one is multiplied",
        phrase="asynchronous copies",
        mechanism="Several panels ahead are under way from device memory to shared memory without passing through "
        "registers, so their latency lies behind the multiplications.",
        category=Category.LATENCY_HIDING,
        keywords=r"async|double.?buffer|multi.?stage|pipelin|prefetch|overlap",
    ),
    Structure.VECTOR: Text(
        title="Load panels with 16-byte accesses",
        phrase="16-byte loads",
        mechanism="Each thread loads 16 bytes at a time: a quarter of the instructions and full lines for every warp.",
        category=Category.MEMORY_ACCESS,
        keywords=r"vector|float4|16.?byte|128.?bit|wide load|coalesc",
    ),
    Structure.GROUPED: Text(
        title="Let blocks that run together share panels in the second-level cache",
        phrase="grouped blocks",
        mechanism="Tiles are handed out in groups of rows before the next column instead of row after row, so that the "
        "blocks in flight touch fewer different panels and most loads hit the L2 cache.",
        category=Category.MEMORY_ACCESS,
        keywords=r"group|raster|l2|second.?level|swizzl.*block|block.*swizzl|locality|reuse",
    ),
    Structure.PERSISTENT: Text(
        title="Keep one set of blocks resident that walks over all tiles",
        phrase="persistent blocks",
        mechanism="Blocks start once and take tile after tile, so that copies for the next tile begin while the last "
        "sums of one are written, and no multiprocessor waits for blocks to start.",
        category=Category.PARALLELISM,
        keywords=r"persist|resident|grid.?stride|tile scheduler|wave",
    ),
    Structure.CLUSTER: Text(
        title="Let pairs of blocks share panels through cluster multicast",
        phrase="cluster multicast",
        mechanism="Two blocks of a cluster take tiles below each other. Each copies half of the panel that both need and "
        "the copy engine delivers it to both, which takes a third of the traffic off the L2 cache.",
        category=Category.MEMORY_ACCESS,
        keywords=r"cluster|multicast|distributed shared",
    ),
    Structure.WIDE: Text(
        title="Exchange sums between lanes so that each writes four neighbours",
        phrase="wide stores",
        mechanism="A fragment gives each lane two neighbouring columns. Lanes swap halves by a shuffle and write four at "
        "a time, which fills whole 32-byte sectors and halves the number of stores.",
        category=Category.MEMORY_ACCESS,
        keywords=r"wide.?store|shuffle|coalesced (write|store)|write.*sector|store.*vector|epilogue",
    ),
    Structure.SPLIT: Text(
        title="Split the contraction among blocks and add their parts",
        phrase="a split contraction",
        mechanism="When the output has fewer tiles than the device has multiprocessors, several blocks share a tile, each "
        "with a part of k; a second kernel adds the parts and applies the epilogue.",
        category=Category.PARALLELISM,
        keywords=r"split.?k|split the (k|contraction)|stream.?k|slice",
    ),
}

CONFLICTS: tuple[Composition, ...] = (
    frozenset({Structure.TENSOR, Structure.WARPGROUP}),
    frozenset({Structure.ASYNC, Structure.WARPGROUP}),
    frozenset({Structure.VECTOR, Structure.WARPGROUP}),
    frozenset({Structure.SPLIT, Structure.WARPGROUP}),
    frozenset({Structure.CLUSTER, Structure.TENSOR}),  # only the copy engine delivers to several blocks
    frozenset({Structure.CLUSTER, Structure.ASYNC}),
    frozenset({Structure.CLUSTER, Structure.VECTOR}),
    frozenset({Structure.CLUSTER, Structure.SPLIT}),
    frozenset({Structure.VECTOR, Structure.ASYNC}),  # asynchronous copies move 16 bytes wherever that is aligned
)

STRUCTURES = Structures(
    texts=TEXTS,
    conflicts=CONFLICTS,
    tunable=frozenset({Structure.WARPGROUP, Structure.TENSOR, Structure.ASYNC, Structure.GROUPED, Structure.SPLIT}),
    varying=(Structure.GROUPED, Structure.PERSISTENT, Structure.ASYNC, Structure.WIDE),
    pointers=(
        (NOT_BUILT, (Structure.WARPGROUP, Structure.TENSOR, Structure.ASYNC)),
        (
            STOPPED,
            (Structure.CLUSTER, Structure.SPLIT, Structure.WARPGROUP, Structure.ASYNC, Structure.VECTOR),
        ),
        (
            WRONG_RESULTS,
            (Structure.CLUSTER, Structure.WARPGROUP, Structure.TENSOR, Structure.SPLIT, Structure.WIDE),
        ),
        (TOO_SLOW, (Structure.CLUSTER, Structure.PERSISTENT, Structure.WARPGROUP, Structure.SPLIT)),
    ),
    last_suspects=(
        Structure.CLUSTER,
        Structure.WARPGROUP,
        Structure.TENSOR,
        Structure.SPLIT,
        Structure.ASYNC,
        Structure.PERSISTENT,
        Structure.WIDE,
        Structure.VECTOR,
        Structure.GROUPED,
    ),
)
