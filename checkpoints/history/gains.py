"""The gain of one kernel over another, with the interval that says whether it is proven."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.side_by_side import alternating_runs
from ridgeline.tools.records.results import Comparison, Evaluation, FailedComparison

Interval = tuple[float, float]
SideBySide = Mapping[tuple[str, str], Comparison]
"""The alternating runs of two candidates, by their ids in the order of the run's ratio."""


class Proof(StrEnum):
    """The proof that an interval gives of a gain."""

    FASTER = "faster"  # it lies above 1
    SLOWER = "slower"  # it lies below 1
    OPEN = "open"  # it includes 1, or there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """One kernel's speed / another's."""

    ratio: float
    interval: Interval | None  # 95 %
    is_side_by_side: bool = False  # of one alternating run of the two

    @property
    def proof(self) -> Proof:
        """Return what the interval proves; two kernels of unknown spread are not told apart."""
        if self.interval is None:
            return Proof.OPEN
        low, high = self.interval
        return Proof.FASTER if low > 1 else Proof.SLOWER if high < 1 else Proof.OPEN


def measured_side_by_side(archive: Archive) -> SideBySide:
    """Return the pairs that were measured in one alternating run, in both orders; a later run replaces an earlier one.

    A later run in which one of the two failed leaves no ratio; one in which either may have failed says nothing of a pair.
    """
    found: dict[tuple[str, str], Comparison] = {}
    for (first, second), run in alternating_runs(archive):
        if isinstance(run, FailedComparison):
            if run.at_fault is not None:
                found.pop((first, second), None)
                found.pop((second, first), None)
            continue
        low, high = run.ratio_ci95
        if min(low, high, run.ratio) > 0 and math.isfinite(high):
            found[first, second] = run
            found[second, first] = _inverse(run)
    return found


def _inverse(pair: Comparison) -> Comparison:
    low, high = pair.ratio_ci95
    return Comparison(
        ratio=1 / pair.ratio,
        ratio_ci95=(1 / high, 1 / low),
        first_ms=pair.second_ms,
        second_ms=pair.first_ms,
        blocks=pair.blocks,
    )


def gain_over_eager(evaluation: Evaluation | None) -> Gain | None:
    """Return a kernel's speedup over eager PyTorch as a gain; None without one."""
    if evaluation is None or evaluation.speedup is None:
        return None
    ends = evaluation.speedup_interval
    return Gain(ratio=evaluation.speedup, interval=(ends[0], ends[1]) if ends else None, is_side_by_side=True)


def gain_over(parent: Evaluation | None, kernel: Evaluation | None, pairs: SideBySide) -> Gain | None:
    """Return what a kernel gained over its parent; None where either has no time.

    Of one alternating run of the two where there was one. Else by their speedups over eager PyTorch, whose intervals
    have to be apart to prove anything: the ends are the lowest and the highest ratio that both leave room for. Two
    classes of precision, which have two eagers, are compared by their times, without an interval.
    """
    if parent is None or kernel is None or parent.speedup is None or kernel.speedup is None:
        return None
    if (pair := pairs.get((parent.candidate_id, kernel.candidate_id))) is not None:
        return Gain(ratio=pair.ratio, interval=pair.ratio_ci95, is_side_by_side=True)
    if parent.is_reduced != kernel.is_reduced:
        before_ms, after_ms = _median_ms(parent), _median_ms(kernel)
        return Gain(ratio=before_ms / after_ms, interval=None) if before_ms and after_ms else None
    before, after = parent.speedup_interval, kernel.speedup_interval
    ends = (after[0] / before[1], after[1] / before[0]) if before and after and min(before) > 0 else None
    return Gain(ratio=kernel.speedup / parent.speedup, interval=ends) if parent.speedup else None


def _median_ms(evaluation: Evaluation) -> float | None:
    """Return a kernel's own time; None without one."""
    return evaluation.timing.median_ms if evaluation.timing else None
