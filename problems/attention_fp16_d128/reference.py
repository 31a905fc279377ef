"""Attention of half precision with heads of 128 elements, without a mask."""

import torch
from torch import nn
from torch.nn import functional

BATCH = 4
HEADS = 16
TOKENS = 4096
DEPTH = 128
DTYPE = "float16"


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, HEADS, TOKENS, DEPTH, dtype=getattr(torch, DTYPE)) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return []
