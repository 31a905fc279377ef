"""Attention in fp16 of 64 sequences of 4096 tokens and 64 elements a head."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 16, 4096, 64, dtype=torch.float16) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return []
