"""The product of two matrices of half precision."""

import torch
from torch import nn

M = 4096  # rows of a and of the product
K = 4096
N = 4096  # columns of b and of the product
DTYPE = "float16"


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


def get_inputs() -> list[torch.Tensor]:
    dtype = getattr(torch, DTYPE)
    return [torch.randn(M, K, dtype=dtype), torch.randn(K, N, dtype=dtype)]


def get_init_inputs() -> list[int]:
    return []
