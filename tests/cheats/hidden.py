"""A costly part behind a small scale, an index buffer and a scalar: sigmoid(gain x) + scale * tanh(x W)[:, index]."""

import torch
from torch import nn

ROWS = 128
COLS = 256


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols, cols) / cols**0.5)
        self.scale = nn.Parameter(torch.full((cols,), 1e-6))
        self.register_buffer("index", (torch.arange(cols) * 37 + 11) % cols)

    def forward(self, x, gain):
        return torch.sigmoid(x * gain) + self.scale * torch.tanh(x @ self.weight)[:, self.index]


def get_inputs():
    return [torch.randn(ROWS, COLS), 0.75]


def get_init_inputs():
    return [COLS]
