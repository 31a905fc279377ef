"""Sums of what falls into each bin of a buffer of edges, on which values lie, and spikes at a threshold that a buffer holds."""

import torch
from torch import nn

ROWS = 64
WIDTH = 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.arange(-8, 8) / 8)
        self.register_buffer("threshold", torch.tensor(0.5))

    def forward(self, x):
        bins = torch.bucketize(x, self.edges, right=True)
        weights = torch.linspace(1, 2, len(self.edges) + 1, device=x.device)
        return weights[bins] * x, (x >= self.threshold).float().cumsum(-1)


def get_inputs():
    return [torch.randint(-10, 11, (ROWS, WIDTH)) / 8]


def get_init_inputs():
    return []
