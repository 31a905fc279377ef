"""Attention in single precision with heads of 64 elements; no query sees a later key."""

import torch
from torch import nn
from torch.nn import functional

BATCH = 4
HEADS = 16
TOKENS = 2048
DEPTH = 64


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, HEADS, TOKENS, DEPTH) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return []
