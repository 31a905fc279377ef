"""What mixes early for random matrices: beliefs under counted transitions, and a cell over a table; and rows in order."""

import torch
from torch import nn

STEPS = 128
BATCH = 4
STATES = 16
WORDS = 50
HIDDEN = 32
ROWS = 32
KEYS = 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.counts = nn.Parameter(0.5 + torch.rand(STATES, STATES))
        self.table = nn.Parameter(torch.randn(WORDS, HIDDEN))
        self.inner = nn.Parameter((torch.rand(HIDDEN, HIDDEN) * 2 - 1) / HIDDEN**0.5)

    def forward(self, seen, words, keys):
        transitions = self.counts / self.counts.sum(1, keepdim=True)
        belief = torch.full_like(seen[0], 1 / STATES)
        given = self.table[words]
        state = torch.zeros_like(given[0])
        for step in range(STEPS):
            belief = belief @ transitions * seen[step]
            belief = belief / belief.sum(1, keepdim=True)
            state = torch.tanh(torch.addmm(given[step], state, self.inner))
        return belief, state, keys.sort(1).values


def get_inputs():
    seen = 0.5 + torch.rand(STEPS, BATCH, STATES)
    return [seen, torch.randint(0, WORDS, (STEPS, BATCH)), torch.randn(ROWS, KEYS)]


def get_init_inputs():
    return []
