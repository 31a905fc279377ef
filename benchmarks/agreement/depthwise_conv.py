"""A 3 x 3 convolution of each channel with its own weights."""

import torch
from torch import nn

BATCH = 32
CHANNELS = 64
SIZE = 224


class Model(nn.Module):
    """One convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of x's shape."""
        return self.conv(x)


def get_inputs() -> list[torch.Tensor]:
    """Return the inputs."""
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    """Return nothing: the model takes no arguments."""
    return []
