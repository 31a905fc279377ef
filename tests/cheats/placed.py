"""Windows of a signal by positions that follow each other, values in slots of whole blocks, and sums of a few lengths."""

import torch
from torch import nn

SIGNAL = 8192
WINDOWS = 32
WINDOW = 128
BLOCKS = 256
BLOCK = 16
USED = 64
ROWS = 8
LEAST = 256
COLS = 4096


class Model(nn.Module):
    def forward(self, signal, positions, values, slots, x, lengths):
        kept = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return signal[positions].sum(-1), values[slots], torch.where(kept, x, 0.0).sum(-1)


def get_inputs():
    positions = torch.randint(0, SIGNAL - WINDOW, (WINDOWS, 1)) + torch.arange(WINDOW)
    slots = (torch.randperm(BLOCKS)[:USED, None] * BLOCK + torch.arange(BLOCK)).flatten()
    lengths = torch.randint(LEAST, COLS + 1, (ROWS,))
    return [torch.randn(SIGNAL), positions, torch.randn(BLOCKS * BLOCK), slots, torch.randn(ROWS, COLS), lengths]


def get_init_inputs():
    return []
