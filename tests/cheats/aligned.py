"""The edit distance of pairs of sequences: one for an insertion, a deletion or a substitution."""

import torch
from torch import nn

PAIRS = 32
PLACES = 80
LETTERS = 4


class Model(nn.Module):
    def forward(self, x, y):
        columns = torch.arange(PLACES + 1)
        before = columns.expand(PAIRS, -1)
        for row in range(PLACES):
            differs = (y != x[:, row : row + 1]).long()
            kept = torch.minimum(before[:, 1:] + 1, before[:, :-1] + differs)
            above = torch.cat((torch.full((PAIRS, 1), row + 1), kept), 1)
            before = (above - columns).cummin(-1).values + columns
        return before[:, -1]


def get_inputs():
    return [torch.randint(0, LETTERS, (PAIRS, PLACES)), torch.randint(0, LETTERS, (PAIRS, PLACES))]


def get_init_inputs():
    return []
