"""Outputs whose numbers are nearly equal: what a sum loses is large beside the little by which they differ."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged, sums_by_lanes

CHANNELS = 32
TRIALS = ("nominal_0", "nominal_1", "integers", "row_scaled")


def variances(x: torch.Tensor) -> torch.Tensor:
    rows = x.transpose(0, 1).reshape(CHANNELS, -1)
    means = sums_by_lanes(rows) / rows.shape[1]
    return sums_by_lanes((rows - means[:, None]) ** 2) / rows.shape[1]


@pytest.mark.parametrize("trial", TRIALS)
def test_a_variance_for_each_channel_in_fp32_is_right_and_one_of_fewer_terms_is_not(trial: str) -> None:
    judged = Judged("x", f"torch.randn(16, {CHANNELS}, 32, 64)", "return x.var(dim=(0, 2, 3), unbiased=False)")
    assert judged.passes(trial, variances)
    assert not judged.passes(trial, lambda x: variances(x[:15]))


@pytest.mark.parametrize("trial", TRIALS)
def test_nearly_equal_numbers_that_each_depend_on_an_operand_of_their_own_are_held_to_their_spread(trial: str) -> None:
    judged = Judged("x", "torch.randn(64, 256)", "return torch.sigmoid(1e-3 * x)")
    assert judged.passes(trial, lambda x: torch.sigmoid(1e-3 * x))
    if trial != "integers":  # which bf16 has
        assert not judged.passes(trial, lambda x: torch.sigmoid(1e-3 * x.bfloat16().float()))
    assert not judged.passes(trial, lambda x: torch.full_like(x, 0.5))
