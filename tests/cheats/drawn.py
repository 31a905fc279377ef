"""A mask that is drawn, always as a prefix of each row, and whole numbers that always come twice alike."""

import torch
from torch import nn

ROWS = 64
COLS = 1024


class Model(nn.Module):
    def forward(self, x, mask, a, b):
        return torch.where(mask, x, 0.0).sum(-1), torch.where(a == b, a, 2 * b)


def get_inputs():
    lengths = torch.randint(COLS // 8, COLS // 2, (ROWS, 1))
    a = torch.randint(0, 30000, (ROWS, COLS), dtype=torch.int32)
    return [torch.randn(ROWS, COLS), torch.arange(COLS) < lengths, a, a.clone()]


def get_init_inputs():
    return []
