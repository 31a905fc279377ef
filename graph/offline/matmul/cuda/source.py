"""CUDA for a contraction, by the unit that multiplies."""

from __future__ import annotations

from ridgeline.graph.offline.matmul.cuda.blocks import write_blocks
from ridgeline.graph.offline.matmul.cuda.structures import Structure
from ridgeline.graph.offline.matmul.cuda.warpgroups import write_warpgroups
from ridgeline.graph.offline.matmul.kernel import Kernel


def write_source(kernel: Kernel) -> str:
    """Return the whole source but its first line."""
    return write_warpgroups(kernel) if kernel.has(Structure.WARPGROUP) else write_blocks(kernel)
