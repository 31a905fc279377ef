"""A matrix times a vector."""

import torch
from torch import nn

ROWS = 16384
COLS = 8192


class Model(nn.Module):
    """One product."""

    def forward(self, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Return one number a row."""
        return torch.mv(a, x)


def get_inputs() -> list[torch.Tensor]:
    """Return the inputs."""
    return [torch.randn(ROWS, COLS), torch.randn(COLS)]


def get_init_inputs() -> list[object]:
    """Return nothing: the model takes no arguments."""
    return []
