"""A convolution with few channels and large filters, the first layer of AlexNet."""

import torch
from torch import nn

BATCH = 100
CHANNELS = 3
HEIGHT = 224
WIDTH = 224
FILTERS = 96
KERNEL = 11
STRIDE = 4
PADDING = 2


class Model(nn.Module):
    def __init__(self, channels: int, filters: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel, stride=stride, padding=padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[int]:
    return [CHANNELS, FILTERS, KERNEL, STRIDE, PADDING]
