"""A product whose rows have sizes of their own, over nine orders of magnitude, as gradients of layers have."""

import torch
from torch import nn

ROWS = 512
COLS = 256


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols, cols) / cols**0.5)

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.randn(ROWS, COLS) * torch.logspace(-9, 0, ROWS)[torch.randperm(ROWS), None]]


def get_init_inputs():
    return [COLS]
