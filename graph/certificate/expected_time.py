"""The time that a certificate may take, by what the search measured of its kernel; for viewers alone, nothing depends on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ridgeline.tools.records.results import Evaluation

PYTORCH_S = 60.0
"""All of PyTorch's configurations: 36 to 83 s on an H200, 45 to 72 s on 2 cores."""
COMPARISON = 2.0
"""An alternating run of two kernels, of the search's timing of one: 98 s for two runs where a timing took 24.5 s."""
_BUILDS: Mapping[str, float] = {"build": 1.0, "sanitize": 2.0, "other_shapes": 3.0}
_VERIFICATIONS: Mapping[str, float] = {"verify": 5.0, "sanitize": 2.5, "other_shapes": 4.0}
_TIMINGS: Mapping[str, float] = {"time": 3.0, "compare": 1.0}
"""Of each step, how often the search's own build, verification and timing of the kernel it takes: measured on 2 cores, where
a verification took 4.7 s, a timing 24.5 s, and the steps 25 s (verify), 13 s (sanitize), 71 s (time), 25 s (compare) and 23 s
(other shapes)."""


def expected_s(evaluation: Evaluation, steps: Iterable[str], *, comparisons: int = 0) -> float:
    """Return about how many seconds these steps take, after so many comparisons with other kernels."""
    names = list(steps)
    build_s = evaluation.build.build_s if evaluation.build else 0.0
    verify_s = evaluation.verdict.verify_s if evaluation.verdict else 0.0
    timing_s = evaluation.timing.benchmark_s if evaluation.timing else 0.0
    taken_s = sum(
        _BUILDS.get(name, 0.0) * build_s + _VERIFICATIONS.get(name, 0.0) * verify_s + _TIMINGS.get(name, 0.0) * timing_s
        for name in names
    )
    return taken_s + COMPARISON * comparisons * timing_s + (PYTORCH_S if "baselines" in names else 0.0)
