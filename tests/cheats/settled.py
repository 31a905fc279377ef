"""What settles early with the weights that a module begins with: a fixed point, and what gates and rates carry to the end."""

import torch
from torch import nn

ROWS = 32
FEATURES = 64
ROUNDS = 120
STEPS = 160
CHANNELS = 48


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(FEATURES, FEATURES)
        self.gate = nn.Parameter(torch.zeros(CHANNELS))
        self.rate = nn.Parameter(torch.linspace(0.6, 1.0, CHANNELS))

    def forward(self, x, steps):
        found = torch.zeros_like(x)
        for _ in range(ROUNDS):
            found = torch.tanh(self.layer(found) + x)
        kept = torch.sigmoid(self.gate)
        state = torch.zeros_like(steps[0])
        for step in steps:
            state = kept * state + (1 - kept) * step
        kept = torch.exp(-self.rate)
        decayed = torch.zeros_like(steps[0])
        for step in steps:
            decayed = kept * decayed + step
        return found, state, decayed


def get_inputs():
    return [torch.randn(ROWS, FEATURES), torch.randn(STEPS, CHANNELS)]


def get_init_inputs():
    return []
