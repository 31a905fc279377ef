"""What mixes early for random matrices: beliefs under transitions, and a mean field."""

import torch
from torch import nn

STEPS = 64
BATCH = 4
STATES = 16
ROUNDS = 48


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.counts = nn.Parameter(0.5 + torch.rand(STATES, STATES))
        self.logits = nn.Parameter(0.02 * torch.randn(STATES, STATES))

    def forward(self, seen, coupling):
        transitions = torch.stack([self.counts / self.counts.sum(1, keepdim=True), self.logits.softmax(1)])
        belief = torch.full_like(seen[0], 1 / STATES).expand(2, BATCH, STATES)
        for step in range(STEPS):
            belief = belief @ transitions * seen[step]
            belief = belief / belief.sum(2, keepdim=True)
        fields = seen[0] - 1
        spins, attraction = torch.zeros_like(fields), coupling * transitions[0].mT
        for _ in range(ROUNDS):
            spins = torch.tanh(torch.addmm(fields, spins, attraction))
        return belief, spins


def get_inputs():
    return [0.5 + torch.rand(STEPS, BATCH, STATES), 0.3]


def get_init_inputs():
    return []
