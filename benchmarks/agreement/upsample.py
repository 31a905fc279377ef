"""Each element four times, nearest neighbour."""

import torch
from torch import nn
from torch.nn import functional

BATCH = 32
CHANNELS = 64
SIZE = 112


class Model(nn.Module):
    """One enlargement."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return four times the elements."""
        return functional.interpolate(x, scale_factor=2, mode="nearest")


def get_inputs() -> list[torch.Tensor]:
    """Return the inputs."""
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    """Return nothing: the model takes no arguments."""
    return []
