"""A softmax whose caller asks for float64."""

import torch
from torch import nn

ROWS = 256
COLS = 1024


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=torch.float64)]


def get_init_inputs():
    return []
