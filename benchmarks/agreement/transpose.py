"""A matrix with its two dimensions exchanged."""

import torch
from torch import nn

ROWS = 12288
COLS = 8192


class Model(nn.Module):
    """One transposition in memory."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a contiguous matrix."""
        return x.t().contiguous()


def get_inputs() -> list[torch.Tensor]:
    """Return the inputs."""
    return [torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    """Return nothing: the model takes no arguments."""
    return []
