"""The order of the kernels that passed: fastest first, however the machine's speed drifted during the search."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from ridgeline.tools.records.results import Evaluation


def fastest_first(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return `ok` evaluations ordered by steady time = usual reference time / lower end of the speedup's interval.

    A CPU's speed drifts by several percent over a search, and the paired speedup does not. So the reference's usual
    time is its median over the search, full and reduced precision apart. The lower end counts because the highest of
    many noisy figures is the luckiest. Of equals the first by its id counts, whichever was stored first.
    """
    reference_times: dict[bool, list[float]] = defaultdict(list)
    for evaluation in evaluations:
        if evaluation.timing and evaluation.timing.reference_ms:
            reference_times[evaluation.is_reduced].append(evaluation.timing.reference_ms)
    usual_ms = {reduced: statistics.median(times) for reduced, times in reference_times.items()}
    return sorted(evaluations, key=lambda e: (_steady_ms(e, usual_ms), e.candidate_id))


def _steady_ms(evaluation: Evaluation, usual_ms: dict[bool, float]) -> float:
    reference_ms = usual_ms.get(evaluation.is_reduced)
    if reference_ms and evaluation.sure_speedup:
        return reference_ms / evaluation.sure_speedup
    return evaluation.timing.median_ms if evaluation.timing and evaluation.timing.median_ms else float("inf")
