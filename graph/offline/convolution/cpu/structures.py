"""The structures of a convolution for a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ridgeline.graph.offline.composer import STOPPED, TOO_SLOW, WRONG_RESULTS, Structures, Text
from ridgeline.tools.records.vocabulary import Category, ReasonCode


class Structure(StrEnum):
    """Names as they stand in a source's header."""

    FILTERS = "filter-vectors"
    POOL = "pool-rows"
    PANEL = "weight-panel"
    ROWS = "row-block"
    PREFETCH = "prefetch"
    DYNAMIC = "dynamic-schedule"


TEXTS: Mapping[str, Text] = {
    Structure.FILTERS: Text(
        title="Repack the weights so that filters fill the vectors",
        phrase="filter vectors",
        mechanism="Sixteen filters are one vector; a register block of filters x neighbouring outputs shares each "
        "weight vector and each broadcast input. Short output rows leave no lane empty.",
        category=Category.COMPUTE,
        keywords=r"repack|weight.?layout|filter|output.?channel|register.?block|nchwc?16",
    ),
    Structure.POOL: Text(
        title="Pool from a rolling buffer of rows and never store the convolution's output",
        phrase="a rolling row buffer for the pool",
        mechanism="A thread keeps only the rows of the convolution that a pooling window covers, in its cache, and "
        "writes maxima; the intermediate tensor never reaches memory.",
        category=Category.MEMORY_ACCESS,
        keywords=r"pool|fus|rolling|row.?buffer|intermediate",
    ),
    Structure.PANEL: Text(
        title="Keep a channel's weights in the first-level cache for a whole row",
        phrase="weight panels",
        mechanism="The taps of one input channel are applied to every output of the rows at hand before the next "
        "channel's weights are read; partial sums wait in a buffer.",
        category=Category.MEMORY_ACCESS,
        keywords=r"panel|cache.?block|weights? in (l1|cache)|loop.?order|input.?channel block|tap.?block",
    ),
    Structure.ROWS: Text(
        title="Compute several output rows from one set of input rows",
        phrase="blocks of rows",
        mechanism="Neighbouring output rows share most of their input rows, which are converted, padded and laid out "
        "once for the block, and weights are read once for all of them.",
        category=Category.MEMORY_ACCESS,
        keywords=r"row.?block|several rows|input.?row|reuse|im2col",
    ),
    Structure.PREFETCH: Text(
        title="Prefetch the next block's input rows",
        phrase="prefetching",
        mechanism="The input rows of the following block are asked for before this one is multiplied, so copying them "
        "finds them in the cache.",
        category=Category.LATENCY_HIDING,
        keywords=r"prefetch|ahead|latency",
    ),
    Structure.DYNAMIC: Text(
        title="Hand out blocks of rows to threads as they become free",
        phrase="blocks of rows on demand",
        mechanism="Threads that are delayed by others on their core take fewer blocks; nobody waits at the end for the "
        "slowest.",
        category=Category.PARALLELISM,
        keywords=r"dynamic|schedul|chunk|balanc|guided|thread",
    ),
}

STRUCTURES = Structures(
    texts=TEXTS,
    tunable=frozenset({Structure.FILTERS, Structure.PANEL, Structure.ROWS}),
    varying=(Structure.ROWS, Structure.FILTERS, Structure.PREFETCH, Structure.DYNAMIC),
    pointers=(
        (STOPPED | {ReasonCode.OUTPUT_NOT_WRITTEN}, (Structure.POOL, Structure.ROWS)),
        (WRONG_RESULTS, (Structure.POOL, Structure.PANEL)),
        (TOO_SLOW, (Structure.DYNAMIC, Structure.PREFETCH)),
    ),
)
