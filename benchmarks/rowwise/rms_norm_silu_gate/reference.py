"""RMS norm of a row, multiplied by the SiLU of a gate."""

import torch

ROWS, COLS = 2048, 1024


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(COLS))

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
        return x * scale * self.weight * torch.nn.functional.silu(gate)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    return []
