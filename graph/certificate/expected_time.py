"""The time that a certificate may take, by what the search measured of its kernel; for viewers alone, nothing depends on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ridgeline.tools.records.results import Evaluation

PYTORCH_S = 60.0
"""All of PyTorch's configurations: 36 to 83 s on an H200, 45 to 72 s on 2 cores."""
SHAPE_S = 3.0
"""The description of the reference at another shape: three of a small kernel took 9 s more than its builds and trials."""
COMPARISON = 2.0
"""An alternating run of two kernels, of the search's timing of one: 98 s for two runs where a timing took 24.5 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """The time of a step: how often the search's own build, verification and timing of the kernel it takes."""

    builds: float = 0.0
    verifications: float = 0.0
    timings: float = 0.0
    fixed_s: float = 0.0  # for PyTorch alone, whatever the kernel

    def expected_s(self, evaluation: Evaluation) -> float:
        """Return about how many seconds the step takes for the kernel of this evaluation."""
        build_s = evaluation.build.build_s if evaluation.build else 0.0
        verify_s = evaluation.verdict.verify_s if evaluation.verdict else 0.0
        of_kernel_s = self.builds * build_s + self.verifications * verify_s + self.timings * _timing_s(evaluation)
        return of_kernel_s + self.fixed_s


def expected_s(evaluation: Evaluation, costs: Iterable[StepCost], *, comparisons: int = 0) -> float:
    """Return about how many seconds steps of these costs take, after so many comparisons with other kernels."""
    steps_s = sum(cost.expected_s(evaluation) for cost in costs)
    return steps_s + COMPARISON * comparisons * _timing_s(evaluation)


def left_s(evaluation: Evaluation, done: Sequence[tuple[StepCost, float]], left: Sequence[StepCost]) -> float:
    """Return about how many seconds the steps that are left take, at the pace of those that are `done`: each with its seconds.

    A busy machine makes all steps longer. Few seconds say little of a pace, so the steps that are left are taken for as long
    as expected beside those that are done. A pace below what is expected shortens nothing.
    """
    expected_left_s = expected_s(evaluation, left)
    whole_s = expected_s(evaluation, (cost for cost, _ in done)) + expected_left_s
    pace = (sum(took_s for _, took_s in done) + expected_left_s) / whole_s if whole_s > 0 else 1.0
    return max(1.0, pace) * expected_left_s


def _timing_s(evaluation: Evaluation) -> float:
    return evaluation.timing.benchmark_s if evaluation.timing else 0.0
