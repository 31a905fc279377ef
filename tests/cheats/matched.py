"""The edit distances between all sequences of one batch."""

import torch
from torch import nn

SEQUENCES = 12
PLACES = 80
LETTERS = 16


class Model(nn.Module):
    def forward(self, tokens):
        columns = torch.arange(PLACES + 1)
        before = columns.expand(SEQUENCES, SEQUENCES, -1)
        for row in range(PLACES):
            differs = (tokens[None] != tokens[:, None, row : row + 1]).long()
            kept = torch.minimum(before[..., 1:] + 1, before[..., :-1] + differs)
            above = torch.cat((torch.full_like(kept[..., :1], row + 1), kept), -1)
            before = (above - columns).cummin(-1).values + columns
        return before[..., -1]


def get_inputs():
    return [torch.randint(0, LETTERS, (SEQUENCES, PLACES))]


def get_init_inputs():
    return []
