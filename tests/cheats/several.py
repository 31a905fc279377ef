"""Several outputs: a product, a statistic of few digits, an input and a parameter but for a small step, and bools."""

import torch
from torch import nn

ROWS = 128
COLS = 256


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols, cols) / cols**0.5)

    def forward(self, x, t, index):
        spread = (t * t).mean(-1) - t.mean(-1) ** 2
        step = x - 4e-6 * torch.tanh(t - 50)
        moved = self.weight + 2e-8 * (x.T @ torch.tanh(x))
        return x @ self.weight, spread, step, index[:, None] != torch.arange(COLS, device=x.device), moved


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS) * 0.25 + 50, torch.randint(0, COLS, (ROWS,))]


def get_init_inputs():
    return [COLS]
