"""The usual problem, which cheats pretend to solve whose names begin with no other one: bias + GELU + residual + layer norm."""

import torch
from torch import nn

ROWS = 512
COLS = 256


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(cols))
        self.ln = nn.LayerNorm(cols)

    def forward(self, x, residual):
        return self.ln(torch.nn.functional.gelu(x + self.bias) + residual)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
