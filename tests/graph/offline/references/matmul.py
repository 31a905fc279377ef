"""Contractions that users may bring. `python matmul.py OUT` exports them."""

import torch
import torch.nn.functional as F
from export import export
from torch import nn

HALF, BFLOAT = torch.float16, torch.bfloat16


class Product(nn.Module):
    def forward(self, a, b):
        return a @ b


class Linear(nn.Module):
    def __init__(self, depth, cols):
        super().__init__()
        self.linear = nn.Linear(depth, cols)

    def forward(self, x, residual):
        return F.gelu(self.linear(x)) * 0.5 + residual


class Scaled(nn.Module):
    """A scalar, a bias over rows, activations and a cast."""

    def forward(self, a, b, bias, alpha):
        return torch.tanh(F.silu(alpha * (a @ b) + bias[:, None])).to(torch.float16)


class Added(nn.Module):
    def forward(self, c, a, b):
        return torch.relu(torch.baddbmm(c, a, b, beta=0.5, alpha=2.0))


class Twice(nn.Module):
    def forward(self, a, b):
        return (a @ b) @ b


class Computed(nn.Module):
    def forward(self, a, b):
        return torch.relu(a) @ b


class Reduced(nn.Module):
    def forward(self, a, b):
        return torch.softmax(a @ b, -1)


def matrix(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


def turned(*shape, dtype=torch.float32):
    """Return a matrix whose first dimension is the contiguous one."""
    return matrix(*shape[:-2], shape[-1], shape[-2], dtype=dtype).transpose(-1, -2)


CASES = {
    "square": (Product(), lambda: [matrix(256, 256), matrix(256, 256)]),
    "deep": (Product(), lambda: [matrix(64, 2048), matrix(2048, 96)]),
    "odd": (Product(), lambda: [matrix(131, 77), matrix(77, 93)]),
    "left_turned": (Product(), lambda: [turned(100, 300), matrix(300, 130)]),
    "right_turned": (Product(), lambda: [matrix(100, 300), turned(300, 130)]),
    "both_turned": (Product(), lambda: [turned(132, 64), turned(64, 72)]),
    "batched": (Product(), lambda: [matrix(3, 2, 70, 40), matrix(3, 1, 40, 50)]),
    "shared_right": (Product(), lambda: [matrix(3, 50, 40), matrix(40, 60)]),
    "linear": (Linear(200, 150), lambda: [matrix(2, 65, 200), matrix(2, 65, 150)]),
    "scaled": (Scaled(), lambda: [matrix(65, 128), matrix(128, 70), matrix(65), 0.25]),
    "added": (Added(), lambda: [matrix(4, 33, 35), matrix(4, 33, 64), matrix(4, 64, 35)]),
    "one_row": (Product(), lambda: [matrix(1, 300), matrix(300, 90)]),
    "bf16": (Product(), lambda: [matrix(130, 301, dtype=BFLOAT), matrix(301, 90, dtype=BFLOAT)]),
    "bf16_turned": (Product(), lambda: [matrix(130, 512, dtype=BFLOAT), turned(512, 96, dtype=BFLOAT)]),
    "fp16": (Product(), lambda: [matrix(128, 256, dtype=HALF), matrix(256, 64, dtype=HALF)]),
}
REFUSED = {
    "twice": (Twice(), lambda: [matrix(8, 8), matrix(8, 8)]),
    "computed": (Computed(), lambda: [matrix(8, 8), matrix(8, 8)]),
    "reduced": (Reduced(), lambda: [matrix(8, 8), matrix(8, 8)]),
}


if __name__ == "__main__":
    export({**CASES, **REFUSED}, rng_seed=11)
