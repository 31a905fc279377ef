"""Lengths of shortest paths from a few places, over links whose lengths are given as logarithms: a round for each link."""

import torch
from torch import nn

PLACES = 32
SOURCES = 4


class Model(nn.Module):
    def forward(self, logs):
        lengths = torch.exp(logs)
        reached = lengths[:SOURCES]
        for _ in range(PLACES - 1):
            reached = torch.minimum(reached, (reached[:, :, None] + lengths).amin(1))
        return reached


def get_inputs():
    return [torch.randn(PLACES, PLACES)]


def get_init_inputs():
    return []
