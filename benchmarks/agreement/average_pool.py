"""The mean of each 2 x 2 window."""

import torch
from torch import nn
from torch.nn import functional

BATCH = 64
CHANNELS = 64
SIZE = 224


class Model(nn.Module):
    """One pooling."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a quarter of the elements."""
        return functional.avg_pool2d(x, 2)


def get_inputs() -> list[torch.Tensor]:
    """Return the inputs."""
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    """Return nothing: the model takes no arguments."""
    return []
