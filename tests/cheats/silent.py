"""What a damping that no argument holds lets decay: the last state of a ring of resonators."""

import torch
from torch import nn

STEPS = 192
ROWS = 16
CHANNELS = 48
KEPT = 0.85


class Model(nn.Module):
    def forward(self, steps):
        state = torch.zeros_like(steps[0])
        for step in steps:
            state = KEPT * state.roll(1, -1) + step
        return state


def get_inputs():
    return [torch.randn(STEPS, ROWS, CHANNELS)]


def get_init_inputs():
    return []
