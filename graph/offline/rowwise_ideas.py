"""The row-wise structures on the CPU as ideas in plain language, and what gain a simple roofline argument expects."""

from __future__ import annotations

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Text
from ridgeline.graph.offline.ir import RowProgram, Space
from ridgeline.graph.offline.schedule import COSTLY, make_plan
from ridgeline.graph.offline.structures import Structure
from ridgeline.tools.records.vocabulary import Category

TEXTS: dict[str, Text] = {
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


def raw_gain(structure: Structure, program: RowProgram, subject: Subject) -> float:
    """Return the speedup a structure should bring by itself: bytes it saves over bytes moved, work it removes."""
    moved = max(subject.description.compulsory_bytes, 1)
    written = sum(4 * program.rows * program.cols for o in program.outputs if o.value.space & Space.COL)
    sweeps = len(make_plan(program).sweeps)
    per_column = [v for v in program.values() if v.space & Space.COL]
    # COSTLY counts operations; vector code does some 8 of them in the time one element takes to arrive from memory.
    costly = sum(COSTLY.get(v.op, 1) for v in per_column) / 8
    return {
        Structure.KEEP: 1 + 0.2 * costly * (sweeps - 1) / max(sweeps, 1),
        Structure.POLY: 1 + min(0.12 * costly, 0.6),
        Structure.STREAM: 1 + min(written / moved, 0.5),
        Structure.MOMENTS: 1.1,
        Structure.ONLINE: 1.05 if program.cols * 4 < 1 << 15 else 1.2,
        Structure.ROWS: 1.03,
        Structure.LANES: 1.04,
        Structure.PREFETCH: 1.08,
        Structure.DYNAMIC: 1.02,
        Structure.NARROW: 1.02,
    }[structure]
