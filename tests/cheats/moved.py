"""What usual weights and scalars settle early, and those that are moved to one side do not: logits, logarithms, norms."""

import torch
from torch import nn
from torch.nn import functional as F

NODES = 64
SEEDS = 16
ROUNDS = 32
FIELD = 24
SWEEPS = 96
STEPS = 128
CHANNELS = 48


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(NODES, NODES))
        self.log_screening = nn.Parameter(torch.zeros(FIELD, FIELD))
        self.gate = nn.Linear(CHANNELS, CHANNELS, bias=False)

    def forward(self, scores, start, logit, source, x):
        restart = torch.sigmoid(torch.zeros((), dtype=start.dtype) + logit)
        walk, again = (1 - restart) * torch.softmax(scores, dim=1), restart * start
        found = start
        for _ in range(ROUNDS):
            found = torch.addmm(again, walk, found)
        less = 0.95 * self.weight / self.weight.norm()
        held = start
        for _ in range(ROUNDS):
            held = torch.addmm(start, less, held)
        share = 1 / (4 + torch.exp(self.log_screening))
        beside = torch.ones_like(source).tril(1).triu(-1) - torch.eye(FIELD, dtype=source.dtype)
        field = torch.zeros_like(source)
        for _ in range(SWEEPS):
            field = torch.addmm(torch.addmm(source, beside, field), field, beside) * share
        kept = torch.sigmoid(self.gate(F.layer_norm(x, (CHANNELS,))))
        state, drive = torch.zeros_like(x[0]), (1 - kept) * x
        for step in range(STEPS):
            state = kept[step] * state + drive[step]
        return found, held, field, state


def get_inputs():
    return [
        torch.randn(NODES, NODES),
        torch.randn(NODES, SEEDS),
        0.0,
        torch.randn(FIELD, FIELD),
        torch.randn(STEPS, CHANNELS),
    ]


def get_init_inputs():
    return []
