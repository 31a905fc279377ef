"""Rows in order: numbers that are moved, none of which is rounded."""

import torch
from torch import nn

ROWS = 32
KEYS = 512


class Model(nn.Module):
    def forward(self, keys):
        return keys.sort(1).values


def get_inputs():
    return [torch.randn(ROWS, KEYS)]


def get_init_inputs():
    return []
