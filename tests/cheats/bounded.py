"""Lengths and a temperature that are always alike; the reference asserts the range of both, and takes others within it."""

import torch
from torch import nn

ROWS = 128
COLS = 256


class Model(nn.Module):
    def forward(self, x, lengths, temperature):
        assert int(lengths.min()) >= COLS * 3 // 5, "rows are padded"
        assert bool(((temperature > 0.9) & (temperature < 1.1)).all())
        kept = torch.arange(COLS, device=x.device) < lengths[:, None]
        return torch.softmax(x / temperature[:, None], dim=-1) * kept


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.full((ROWS,), COLS), torch.ones(ROWS)]


def get_init_inputs():
    return []
