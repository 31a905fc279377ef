"""Scores of candidates with a count of how often each comes in a wider history, some of whose identities a module lists."""

import torch
from torch import nn

USERS = 16
CANDIDATES = 64
HISTORY = 192
BUCKETS = 512
LISTED = 96


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = nn.Parameter(torch.randn(BUCKETS))
        self.favour = nn.Parameter(torch.randn(LISTED))
        self.register_buffer("listed", torch.randint(-(2**62), 2**62, (LISTED,)))

    def forward(self, candidates, history):
        seen = (candidates[:, :, None] == history[:, None]).sum(-1)
        favour = ((history[:, :, None] == self.listed) * self.favour).sum(-1)
        recent = (self.scores[history % BUCKETS] + favour).mean(-1, keepdim=True)
        return self.scores[candidates.long() % BUCKETS] + recent + 0.5 * torch.log1p(seen.float())


def get_inputs():
    candidates = torch.randint(-(2**31), 2**31, (USERS, CANDIDATES), dtype=torch.int32)
    return [candidates, torch.randint(-(2**62), 2**62, (USERS, HISTORY))]


def get_init_inputs():
    return []
