"""Robust figures of repeated measurements: medians, percentiles, and an exact interval for a median.

The interval is the sign test's, inverted: the order statistics x(k) and x(n+1-k) cover the median of any continuous
distribution with probability 1 - 2 P(Binomial(n, 1/2) < k) (W. R. Thompson, Annals of Mathematical Statistics 7, 1936;
Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", section 3.6). It is chosen over a bootstrap, which
covers too little with the ten or so blocks of a measurement and needs a random generator, and over Wilcoxon's, which
assumes symmetry: disturbances only make a timing slower. Its price is a somewhat wider interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

_CONFIDENCE = 0.95
SMALLEST_SAMPLE_95 = 6
"""Fewer values have no distribution-free 95 % interval: min and max of five cover with 93.75 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRatio:
    """The median of paired ratios with its 95 % interval."""

    ratio: float
    ci95: tuple[float, float]
    pairs: int

    @property
    def half_width(self) -> float:
        """Return half the interval's width relative to the median; infinity below six pairs."""
        if self.pairs < SMALLEST_SAMPLE_95:
            return math.inf
        return (self.ci95[1] - self.ci95[0]) / (2 * self.ratio)


def interval_rank(n: int) -> int:
    """Return the largest k (from 1) for which x(k) … x(n+1-k) covers the median with 95 %; 0 when none does."""
    allowed = (1 - _CONFIDENCE) / 2
    below, rank = 0.0, 0
    for k in range(n // 2):
        below += math.comb(n, k) / 2.0**n
        if below > allowed:
            break
        rank = k + 1
    return rank


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return an interval that covers the median with at least 95 %: (smallest, largest) of too few values."""
    if not values:
        raise ValueError("an interval needs at least one value")
    ordered = sorted(values)
    rank = max(1, interval_rank(len(ordered)))
    return ordered[rank - 1], ordered[-rank]


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> PairedRatio:
    """Return the median of numerators[i] / denominators[i] with its 95 % interval."""
    ratios = [a / b for a, b in zip(numerators, denominators, strict=True)]
    return PairedRatio(ratio=median(ratios), ci95=median_interval(ratios), pairs=len(ratios))


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile, interpolated between neighbours (0: smallest, 50: median, 100: largest)."""
    if not values:
        raise ValueError("a percentile needs at least one value")
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """The rule that says when enough has been measured.

    The rule looks at the interval's width only, never at where it lies, so that stopping favours no outcome; the one
    exception, `give_up_below`, ends measurements whose exact ratio interests nobody.
    """

    smallest: int  # pairs
    largest: int
    half_width: float = 0.01
    time_s: float = math.inf  # after `smallest` pairs
    patience_s: float = math.inf  # as soon as there is an interval at all, however few the pairs
    give_up_below: float = 0.0  # stop early once the whole interval lies below this ratio

    def without_giving_up(self) -> StoppingRule:
        """Return the rule where no ratio ends it early: of a side measured alone, or of two kernels."""
        return replace(self, give_up_below=0.0)

    def is_done(self, measured: PairedRatio, elapsed_s: float) -> bool:
        """Return whether to stop after these pairs and this time."""
        has_interval = measured.pairs >= SMALLEST_SAMPLE_95
        if has_interval and (measured.ci95[1] < self.give_up_below or elapsed_s >= self.patience_s):
            return True
        if measured.pairs < self.smallest:
            return False
        return measured.pairs >= self.largest or measured.half_width <= self.half_width or elapsed_s >= self.time_s
