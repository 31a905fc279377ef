"""A problem most of whose inputs are always alike: positions, frequencies, a mask, lengths and a state of zeros.

With a delay, as a busy machine may show it: contents with outliers seem to take the reference longer.
"""

import time

import torch
from torch import nn

ROWS = 128
COLS = 256
OUTLIER = 50
DELAY_S = 0.0


class Model(nn.Module):
    def forward(self, x, positions, frequencies, mask, lengths, state):
        if DELAY_S and bool((x.abs() > OUTLIER).any()):
            time.sleep(DELAY_S)
        table = torch.cos(torch.outer(positions, frequencies))
        scores = (x + state).masked_fill(~mask, 0.0) + table
        return torch.softmax(scores * (torch.arange(COLS, device=x.device) < lengths[:, None]), dim=-1)


def get_inputs():
    return [
        torch.randn(ROWS, COLS),
        torch.arange(ROWS) / ROWS,
        0.01 ** (torch.arange(COLS) / COLS),
        torch.ones(ROWS, COLS, dtype=torch.bool),
        torch.full((ROWS,), COLS),
        torch.zeros(ROWS, COLS),
    ]


def get_init_inputs():
    return []
