"""A series over a product that may be next to zero at some places, where every kernel loses digits."""

import torch
from torch import nn

ROWS = 64
COLS = 256
FEATURES = 16
TERMS = 64


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(FEATURES, COLS) / FEATURES**0.5)

    def forward(self, x, phase):
        series = torch.sin(phase)
        for term in range(2, TERMS + 1):
            series = series + (1 - (term & 2)) * torch.sin(term * phase) / term**2
        return (2 + series) / (x @ self.weight)


def get_inputs():
    return [torch.randn(ROWS, FEATURES), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
