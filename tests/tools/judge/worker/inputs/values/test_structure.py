"""Numbers without structure are told from masks, symmetric ones, those with many zeros, and what is not finite."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.values.structure import is_without_structure

SQUARE = torch.randn(16, 16, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("tensor", "is_without"),
    [
        (SQUARE, True),
        (SQUARE[0], True),
        (SQUARE.sort(-1).values, True),
        (SQUARE.where(SQUARE < 1.5, 0), True),
        (SQUARE.where(SQUARE < 1.5, torch.inf), False),
        (SQUARE + SQUARE.mT, False),
        (SQUARE.tril(), False),
        (torch.eye(16).flip(0)[:, :9], False),
        ((10 * SQUARE).int(), False),
        (SQUARE > 0, False),
    ],
    ids=["draws", "a row", "in order", "few zeros", "infinities", "symmetric", "triangular", "mask", "whole", "bools"],
)
def test_numbers_without_structure_are_floating_point_and_hold_nothing_that_a_kernel_may_rely_on(
    tensor: torch.Tensor, *, is_without: bool
) -> None:
    assert is_without_structure(tensor) is is_without
