"""Put in front of every file here: the reference's work, done honestly; by itself the control."""

import gc
import os
import sys
import threading
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(cols))
        self.ln = nn.LayerNorm(cols)

    def work(self, x, residual):
        y = nn.functional.gelu(x + self.bias) + residual
        y = y - y.mean(1, keepdim=True)
        return y * torch.rsqrt(y.square().mean(1, keepdim=True) + 1e-5) * self.ln.weight + self.ln.bias

    def forward(self, x, residual):
        return self.work(x, residual)


Honest = ModelNew
