"""Features that are mixed with those of near points: random ones of many features are never near, and keep their own."""

import torch
from torch import nn

BANDWIDTH = 0.05


class Model(nn.Module):
    def forward(self, x):
        squares = x.square().sum(-1)
        distances = (squares[:, None] + squares - 2 * x @ x.mT).clamp(min=0)
        return torch.softmax(-distances / (2 * BANDWIDTH**2), dim=-1) @ torch.tanh(x)


def get_inputs():
    return [torch.randn(48, 64)]


def get_init_inputs():
    return []
