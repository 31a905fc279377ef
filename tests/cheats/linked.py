"""What spreads over links for many rounds: those of an edge list, and of lists of neighbours, a column for each node."""

import torch
from torch import nn

NODES = 256
LINKS = 8
EDGES = 4096
ROUNDS = 32


class Model(nn.Module):
    def forward(self, labels, edges, neighbours):
        source, target = edges
        degree = torch.zeros_like(labels).index_add(0, source, torch.ones_like(labels[source])).clamp(min=1)
        rank = spread = labels
        for _ in range(ROUNDS):
            rank = 0.15 * labels + 0.85 * torch.zeros_like(rank).index_add(0, target, (rank / degree)[source])
            spread = spread[neighbours].mean(0)
        return rank, spread


def get_inputs():
    edges, neighbours = torch.randint(NODES, (2, EDGES)), torch.randint(NODES, (LINKS, NODES))
    return [torch.randn(NODES) + 3, edges, neighbours]


def get_init_inputs():
    return []
