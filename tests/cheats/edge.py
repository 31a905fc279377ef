"""A softmax of a range that is asserted: rows that are scaled leave it in about half of the draws."""

import torch
from torch import nn

ROWS = 4
COLS = 4096
LARGEST = 21.0


class Model(nn.Module):
    def forward(self, x):
        assert float(x.abs().max()) < LARGEST, "out of range"
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.rand(ROWS, COLS) + 1]


def get_init_inputs():
    return []
