"""Kernels that were measured in one alternating run: how many times as fast as the first the second is."""

from __future__ import annotations

import math

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.tools.records.keys import ComparisonKey
from ridgeline.tools.records.results import Comparison, FailedComparison

Ratios = dict[tuple[str, str], float]
"""time of the first / time of the second, by the two candidates' ids; infinite or 0 where one of them failed there."""


def alternating_runs(archive: Archive) -> list[tuple[tuple[str, str], Comparison | FailedComparison]]:
    """Return the two candidates of each run, by their ids in the order of its ratio, and how it ended; oldest first."""
    with record_errors(archive.path):
        return [
            (ComparisonKey.read(key).ids, (FailedComparison if "finding" in record else Comparison).from_json(record))
            for key, record in archive.records("comparisons")
        ]


def measured_ratios(archive: Archive) -> Ratios:
    """Return the ratios of all pairs, each pair in both orders; a later run of a pair replaces an earlier one."""
    found: Ratios = {}
    for (first, second), run in alternating_runs(archive):
        ratio = _failed_ratio(run) if isinstance(run, FailedComparison) else run.ratio
        if ratio is not None:
            found[first, second] = ratio
            found[second, first] = 1 / ratio if ratio else math.inf
    return found


def _failed_ratio(run: FailedComparison) -> float | None:
    """Return the ratio of a run that one of the two failed in: that one has lost. None where either may have."""
    return None if run.at_fault is None else (math.inf, 0.0)[run.at_fault]
