"""Each row over its root mean square: read twice, written once."""

import torch
from torch import nn

ROWS = 8192
COLS = 16384
EPS = 1e-5


class Model(nn.Module):
    """One row-wise normalisation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a matrix of x's shape."""
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)


def get_inputs() -> list[torch.Tensor]:
    """Return the inputs."""
    return [torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    """Return nothing: the model takes no arguments."""
    return []
