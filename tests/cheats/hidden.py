"""A problem whose costly part hides behind a small scale, with an index buffer: sigmoid(x) + scale * tanh(x W)[:, index]."""

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

    def forward(self, x):
        return torch.sigmoid(x) + self.scale * torch.tanh(x @ self.weight)[:, self.index]


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
