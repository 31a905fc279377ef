"""The structures of a row-wise kernel for a CPU.

Each structure changes the written source; structures that do not conflict compose.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ridgeline.graph.offline.composer import STOPPED, TOO_SLOW, WRONG_RESULTS, Structures, Text
from ridgeline.graph.offline.program import schedule
from ridgeline.graph.offline.program.ir import REDUCTIONS, RowProgram, Space
from ridgeline.graph.offline.text.arithmetic import INLINE
from ridgeline.tools.records.vocabulary import Category, ReasonCode


class Structure(StrEnum):
    """Names as they stand in a source's header."""

    KEEP = "row-buffer"
    POLY = "poly-math"
    STREAM = "streaming-stores"
    MOMENTS = "single-pass-variance"
    ONLINE = "online-softmax"
    ROWS = "row-block"
    LANES = "accumulators"
    PREFETCH = "prefetch"
    DYNAMIC = "dynamic-schedule"
    NARROW = "narrow-vectors"


TEXTS: Mapping[str, Text] = {
    Structure.KEEP: Text(
        title="Keep the row's intermediate result in a thread-local buffer",
        phrase="a row buffer",
        mechanism="Sweeps after the first read the costly intermediate of each element from a buffer in the first-level "
        "cache instead of computing it again from the inputs.",
        category=Category.MEMORY_ACCESS,
        keywords=r"row.?buffer|keep the row|in registers|recomput|thread.?local|scratch|local buffer",
    ),
    Structure.POLY: Text(
        title="Replace library transcendentals with inline polynomials",
        phrase="inline polynomials",
        mechanism="exp, erf, tanh, sigmoid and log become short branch-free polynomials with two-part range reduction, "
        "so the whole loop stays in vector registers and no call interrupts it; the error stays at fp32 rounding.",
        category=Category.COMPUTE,
        keywords=r"polynomial|minimax|inline (exp|erf|tanh|math)|transcendental|libm|approximat|fast (exp|erf|math)",
    ),
    Structure.STREAM: Text(
        title="Write outputs with streaming stores past the cache",
        phrase="streaming stores",
        mechanism="A normal store first reads the line it overwrites. Outputs are not read again, so whole lines are "
        "written with non-temporal stores from a small tile, which saves that read and leaves the cache to the inputs.",
        category=Category.MEMORY_ACCESS,
        keywords=r"stream|non.?temporal|write.?allocate|bypass|past the cache",
    ),
    Structure.MOMENTS: Text(
        title="Accumulate mean and variance in a single sweep",
        phrase="a single-sweep variance",
        mechanism="Sum and sum of squares, both relative to an origin taken from the row's first elements so that "
        "nothing cancels, are accumulated together; the separate sweep for the variance disappears.",
        category=Category.CONTROL_FLOW,
        keywords=r"single.?(pass|sweep)|one.?pass|welford|sum of squares|moments",
    ),
    Structure.ONLINE: Text(
        title="Find the maximum and the sum of exponentials online",
        phrase="an online softmax",
        mechanism="A block of the row gives its maximum and its exponentials while it is in the nearest cache; the sum "
        "so far is rescaled when the maximum grows. The row is read once instead of twice.",
        category=Category.CONTROL_FLOW,
        keywords=r"online|running max|rescal|flash",
    ),
    Structure.ROWS: Text(
        title="Process several rows together",
        phrase="several rows at a time",
        mechanism="A block of rows shares each load of the per-column parameters and gives independent chains of "
        "arithmetic, which hides the latency of the reductions.",
        category=Category.PARALLELISM,
        keywords=r"several rows|row.?block|rows together|multiple rows|parameter loads|share.*(weight|parameter)",
    ),
    Structure.LANES: Text(
        title="Reduce with several independent accumulators",
        phrase="independent accumulators",
        mechanism="A reduction waits for its own last addition. Several segments of the row, each with an accumulator "
        "of its own, keep both arithmetic units busy.",
        category=Category.COMPUTE,
        keywords=r"accumulator|unroll|independent|instruction.?level|ilp",
    ),
    Structure.PREFETCH: Text(
        title="Prefetch the next row while this one is computed",
        phrase="prefetching",
        mechanism="The first sweep of the next row finds its inputs in the cache because they are asked for one or more "
        "rows ahead, so memory works during the arithmetic.",
        category=Category.LATENCY_HIDING,
        keywords=r"prefetch|ahead|latency",
    ),
    Structure.DYNAMIC: Text(
        title="Hand out rows to threads in small chunks",
        phrase="small chunks of rows",
        mechanism="Threads that are delayed by others on their core take fewer rows; nobody waits at the end for the "
        "slowest.",
        category=Category.PARALLELISM,
        keywords=r"dynamic|schedul|chunk|balanc|guided",
    ),
    Structure.NARROW: Text(
        title="Use 256-bit instead of 512-bit vectors",
        phrase="256-bit vectors",
        mechanism="Narrower vectors avoid the lower clock that wide ones cause on some cores, and leave shorter tails.",
        category=Category.COMPUTE,
        keywords=r"256|vector width|narrow|avx2|downclock|frequency",
    ),
}

CONFLICTS: tuple[frozenset[str], ...] = (
    frozenset({Structure.ROWS, Structure.LANES}),
    frozenset({Structure.ROWS, Structure.ONLINE}),
    frozenset({Structure.DYNAMIC, Structure.ROWS}),
)
"""Both structures of a pair would own the same loop."""
STRUCTURES = Structures(
    texts=TEXTS,
    conflicts=CONFLICTS,
    tunable=frozenset(
        {Structure.ROWS, Structure.LANES, Structure.ONLINE, Structure.STREAM, Structure.PREFETCH, Structure.DYNAMIC}
    ),
    varying=(Structure.PREFETCH, Structure.DYNAMIC, Structure.NARROW, Structure.LANES),
    pointers=(
        (frozenset({ReasonCode.FLAG_NOT_ALLOWED}), (Structure.NARROW,)),
        (STOPPED | {ReasonCode.OUTPUT_NOT_WRITTEN}, (Structure.STREAM, Structure.ROWS, Structure.KEEP)),
        (WRONG_RESULTS, (Structure.MOMENTS, Structure.ONLINE, Structure.POLY)),
        (TOO_SLOW, (Structure.DYNAMIC, Structure.ONLINE)),
    ),
    last_suspects=(
        Structure.ROWS,
        Structure.LANES,
        Structure.STREAM,
        Structure.PREFETCH,
        Structure.DYNAMIC,
        Structure.NARROW,
        Structure.MOMENTS,
        Structure.ONLINE,
        Structure.POLY,
        Structure.KEEP,
    ),
)

MAX_BUFFER_BYTES = 256 * 1024
"""Row buffers live on a thread's stack and should stay in its L2 cache."""
MIN_STREAM_BYTES = 1 << 20
"""Smaller outputs stay in a cache, where a consumer finds them."""
WIDE_BITS = 512
"""Of the registers that narrow vectors leave unused; on a CPU with narrower ones the same code comes about."""


def applicable(program: RowProgram, vector_bits: int) -> tuple[Structure, ...]:
    """Return the structures that change anything for this program on a CPU of this vector width, in a fixed order."""
    reduces = any(o.value.space & Space.ROW and not o.value.is_leaf for o in program.outputs)
    plan = schedule.plan_sweeps(program, keep=True)
    full_bytes = sum(4 * program.rows * program.cols for o in program.outputs if o.value.space & Space.COL)
    has_reduction = any(v.op in REDUCTIONS for v in program.values())
    tests = {
        Structure.KEEP: 0 < plan.buffers * program.cols * 4 <= MAX_BUFFER_BYTES,
        Structure.POLY: any(v.op in INLINE and v.space & Space.COL for v in program.values()),
        Structure.STREAM: full_bytes >= MIN_STREAM_BYTES,
        Structure.MOMENTS: schedule.has_moments(program),
        Structure.ONLINE: schedule.has_online_pair(program),
        Structure.ROWS: reduces and program.rows % 2 == 0 and program.cols * 8 <= MAX_BUFFER_BYTES // 4,
        Structure.LANES: has_reduction and program.cols >= 128,
        Structure.PREFETCH: program.cols >= 64,
        Structure.DYNAMIC: program.rows >= 64,
        Structure.NARROW: program.cols >= 64 and vector_bits >= WIDE_BITS,
    }
    return tuple(s for s in Structure if tests[s])
