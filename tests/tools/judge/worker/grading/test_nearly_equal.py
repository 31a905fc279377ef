"""Outputs whose numbers are nearly equal: what a sum loses is large beside the little by which they differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.grading.made import SOURCE

from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.grading.cases import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.vocabulary import PrecisionClass

CHANNELS, LANES = 32, 8
TRIALS = ("nominal_0", "nominal_1", "integers", "row_scaled")


class Judged:
    """An examiner of one reference of `x`, with its cases."""

    def __init__(self, inputs: str, body: str) -> None:
        self.reference = Reference(SOURCE.format(names="x", inputs=inputs, body=f"        return {body}"))
        memory: Any = SimpleNamespace(parameters={}, inputs=[self.reference.draw_inputs(0)], n_sets=4, device=Cpu())
        self.book = CaseBook(self.reference, SecretSource(self.reference, b"secret"), memory, budget_bytes=1 << 28)
        self.examiner = Examiner(self.book, TRIALS, memory, self.reference, PrecisionClass.FP32)

    def passes(self, trial: str, kernel: Any) -> bool:
        case = self.book.case(trial)
        return all(self.examiner.passed_by((kernel(case.inputs[0]),), case))


def sums_by_lanes(rows: torch.Tensor) -> torch.Tensor:
    """Return the sum of each row as few lanes in fp32 make it, a term after the other."""
    return rows.reshape(len(rows), -1, LANES).cumsum(1)[:, -1].sum(-1)


def variances(x: torch.Tensor) -> torch.Tensor:
    rows = x.transpose(0, 1).reshape(CHANNELS, -1)
    means = sums_by_lanes(rows) / rows.shape[1]
    return sums_by_lanes((rows - means[:, None]) ** 2) / rows.shape[1]


@pytest.mark.parametrize("trial", TRIALS)
def test_a_variance_for_each_channel_in_fp32_is_right_and_one_of_fewer_terms_is_not(trial: str) -> None:
    judged = Judged(f"torch.randn(16, {CHANNELS}, 32, 64)", "x.var(dim=(0, 2, 3), unbiased=False)")
    assert judged.passes(trial, variances)
    assert not judged.passes(trial, lambda x: variances(x[:15]))


@pytest.mark.parametrize("trial", TRIALS)
def test_nearly_equal_numbers_that_each_depend_on_an_operand_of_their_own_are_held_to_their_spread(trial: str) -> None:
    judged = Judged("torch.randn(64, 256)", "torch.sigmoid(1e-3 * x)")
    assert judged.passes(trial, lambda x: torch.sigmoid(1e-3 * x))
    if trial != "integers":  # which bf16 has
        assert not judged.passes(trial, lambda x: torch.sigmoid(1e-3 * x.bfloat16().float()))
    assert not judged.passes(trial, lambda x: torch.full_like(x, 0.5))
