"""Values in the order of their keys, and how alike sets are by their hashes: whole numbers of some 62 bits."""

import torch
from torch import nn

ROWS = 8
KEYS = 1024
QUERIES = 32
SETS = 64
HASHES = 128


class Model(nn.Module):
    def forward(self, keys, values, queries, sets):
        order = torch.sort(keys, dim=-1, stable=True).indices
        return values.gather(1, order), (queries[:, None] == sets).float().mean(-1)


def get_inputs():
    queries, sets = torch.randint(2**61, (QUERIES, HASHES)), torch.randint(2**61, (SETS, HASHES))
    is_alike = torch.rand(QUERIES, HASHES) < torch.rand(QUERIES, 1)
    sets[:QUERIES] = torch.where(is_alike, queries, sets[:QUERIES])
    return [torch.randint(2**62, (ROWS, KEYS)), torch.randn(ROWS, KEYS), queries, sets]


def get_init_inputs():
    return []
