"""Layer norm over everything but the batch: few rows, each of millions of elements."""

import torch
from torch import nn

BATCH = 16
FEATURES = 64
HEIGHT = 256
WIDTH = 256


class Model(nn.Module):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(BATCH, FEATURES, HEIGHT, WIDTH)]


def get_init_inputs() -> list[int]:
    return [FEATURES, HEIGHT, WIDTH]
