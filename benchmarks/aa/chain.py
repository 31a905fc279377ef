"""Sixteen times y + exp(-y * y) / 10: each step's slope is within 9 % of 1, so rounding neither grows nor fades."""

import torch
from torch import nn

ROWS = 2048
COLS = 4096
STEPS = 16


class Model(nn.Module):
    """One fused elementwise chain without parameters, bound by arithmetic."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of x's shape."""
        for _ in range(STEPS):
            x = x + 0.1 * torch.exp(-x * x)
        return x


def get_inputs() -> list[torch.Tensor]:
    """Return one matrix."""
    return [torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    """Return nothing: the model takes no arguments."""
    return []
