"""The product of two float32 matrices."""

import torch
from torch import nn

M = 4096  # rows of a and of the product
K = 4096
N = 4096  # columns of b and of the product


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs() -> list[int]:
    return []
