"""Work on the weights that a call cannot do without and that any two calls in a row have in common: x @ tanh(exp(W))."""

import torch
from torch import nn

ROWS = 8
COLS = 256


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols, cols) / cols**0.5)

    def forward(self, x):
        return x @ torch.tanh(torch.exp(self.weight) - 1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
