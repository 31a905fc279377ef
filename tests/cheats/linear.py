"""A linear map: what one call computes may be enough to know another's result."""

import torch
from torch import nn

ROWS = 256
COLS = 512


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols, cols) / cols**0.5)

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
