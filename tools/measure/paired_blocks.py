"""The ratio of two sides' times, over the pairs of their blocks that count."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ridgeline.tools.measure.statistics import SMALLEST_SAMPLE_95, PairedRatio, paired_ratio
from ridgeline.tools.measure.timed_side import Block, TimedSide

CLOCK_SPREAD = 0.03
"""A pair of blocks does not count when a clock of it is further than this from the median."""


def ratio_of(numerator: TimedSide, denominator: TimedSide) -> PairedRatio:
    """Return the paired ratio of two sides over the pairs of blocks at a GPU's usual clock."""
    kept = steady_pairs(numerator.blocks, denominator.blocks)
    above, below = numerator.per_call_s(), denominator.per_call_s()
    return paired_ratio([above[i] for i in kept], [below[i] for i in kept])


def steady_pairs(first: Sequence[Block], second: Sequence[Block]) -> list[int]:
    """Return the pairs of blocks in which the multiprocessors' clock was within 3 % of its median.

    Every pair counts where no clock is known, and where too few pairs for an interval would be left: the clock wanders.
    """
    clocks = [(a.gpu.sm_mhz, b.gpu.sm_mhz) for a, b in zip(first, second, strict=True)]
    known = [mhz for pair in clocks for mhz in pair if mhz]
    if not known:
        return list(range(len(clocks)))
    usual = median(known)
    kept = [i for i, pair in enumerate(clocks) if all(not mhz or abs(mhz / usual - 1) <= CLOCK_SPREAD for mhz in pair)]
    return kept if len(kept) >= SMALLEST_SAMPLE_95 else list(range(len(clocks)))
