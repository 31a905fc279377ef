"""A 3 x 3 convolution of as many channels as it has filters, with a bias and SiLU: a layer of a residual network."""

import torch
from torch import nn
from torch.nn import functional

BATCH = 128
CHANNELS = 64
HEIGHT = 56
WIDTH = 56


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.silu(self.conv(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[int]:
    return [CHANNELS]
