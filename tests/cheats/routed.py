"""Sequences routed to experts: each by a moving average of its steps, which gates keep for as long as they are trained to."""

import torch
from torch import nn

STEPS = 192
SEQUENCES = 16
WIDTH = 32
EXPERTS = 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.zeros(WIDTH))
        self.router = nn.Parameter(torch.randn(WIDTH, EXPERTS) * WIDTH**-0.5)
        self.experts = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) * WIDTH**-0.5)

    def forward(self, x):
        kept = torch.sigmoid(self.decay)
        state = torch.zeros_like(x[0])
        for step in x:
            state = kept * state + (1 - kept) * step
        chosen = (state @ self.router).argmax(-1)
        return torch.einsum("sw,swo->so", x[-1], self.experts[chosen])


def get_inputs():
    return [torch.randn(STEPS, SEQUENCES, WIDTH)]


def get_init_inputs():
    return []
