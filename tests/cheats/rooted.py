"""Sums from each node to the root by pointer jumping: of trees that are given, and of one that the model holds."""

import torch
from torch import nn

TREES = 8
NODES = 4096
ROUNDS = 12


def to_the_root(parent, length):
    places = torch.arange(NODES)
    parent = torch.minimum(parent, places)
    total = torch.where(parent == places, 0.0, length)
    for _ in range(ROUNDS):
        total = total + total.gather(1, parent)
        parent = parent.gather(1, parent)
    return total


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("held", (torch.rand(NODES) * torch.arange(NODES)).long())

    def forward(self, parent, length):
        return to_the_root(parent, length), to_the_root(self.held.expand(TREES, NODES), length)


def get_inputs():
    return [(torch.rand(TREES, NODES) * torch.arange(NODES)).long(), torch.rand(TREES, NODES)]


def get_init_inputs():
    return []
