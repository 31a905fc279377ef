"""RMS norm multiplied by a SiLU gate, as in gated feed-forward and state-space layers."""

import torch
from torch import nn
from torch.nn import functional

ROWS = 1024
COLS = 1024


class Model(nn.Module):
    def __init__(self, cols: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return x * scale * self.weight * functional.silu(gate)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[int]:
    return [COLS]
