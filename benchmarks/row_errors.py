"""Errors of single rows beside large values, by PyTorch alone: what the limit of a row rests on.

A fast convolution adds values of neighbouring rows and takes them away again, so a row without a large value loses digits
to one beside it. Winograd's F(4x4, 3x3) in fp32 meets a few values of 250 x the rms, as timed sets hold them. From the
other side: a product one of whose rows is made of operands rounded to tf32, or to bf16. A row's error and an element's are
the judge's: over max(|row - mean(row)|, 0.1 x the rms x sqrt(width)), and over rms + |element|. calibrate.py runs it as a
process of its own (`row_errors.py`, prints JSON), on a CPU.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from class_errors import to_tf32
from torch.nn import functional

SEEDS = 20
OUTLIERS, SIZE = 4, 250.0  # of each input: how many, and how large
SHAPES = ((4, 64, 64, 56), (1, 32, 32, 24), (4, 3, 32, 32), (4, 16, 32, 16))  # batch, channels, filters, height = width
BT = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
G = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
AT = ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1))
"""The transforms of F(4x4, 3x3), by Lavin and Gray."""


def winograd(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the convolution of x (B, C, H, W; H and W multiples of 4) with 3x3 filters (K, C, 3, 3), padded by 1."""
    into, filters, back = (torch.tensor(rows, dtype=x.dtype) for rows in (BT, G, AT))
    batch, channels, height, width = x.shape
    tiles = functional.pad(x, (1, 1, 1, 1)).unfold(2, 6, 4).unfold(3, 6, 4)  # (B, C, H / 4, W / 4, 6, 6)
    spread = torch.einsum("ij,bcuvjk,lk->ilcbuv", into, tiles, into).reshape(36, channels, -1)
    weights = torch.einsum("ij,ocjk,lk->iloc", filters, weight, filters).reshape(36, -1, channels)
    sums = (weights @ spread).reshape(6, 6, -1, batch, height // 4, width // 4)
    return torch.einsum("ij,jkobuv,lk->bouivl", back, sums, back).reshape(batch, -1, height, width)


def errors(output: torch.Tensor, exact: torch.Tensor) -> tuple[float, float]:
    """Return the worst row's error and the worst element's."""
    difference, rms = output.double() - exact, exact.square().mean().sqrt()
    scale = (exact - exact.mean(dim=-1, keepdim=True)).norm(dim=-1).clamp_min(0.1 * rms * exact.shape[-1] ** 0.5)
    return float((difference.norm(dim=-1) / scale).max()), float((difference.abs() / (rms + exact.abs())).max())


def of_winograd(shape: tuple[int, int, int, int]) -> tuple[float, float]:
    """Return the errors of F(4x4, 3x3) with a ReLU on inputs with a few outliers."""
    batch, channels, filters, size = shape
    x = torch.randn(batch, channels, size, size)
    x.view(-1)[torch.randint(x.numel(), (OUTLIERS,))] = SIZE
    weight = (2 * torch.rand(filters, channels, 3, 3) - 1) / (9 * channels) ** 0.5
    exact = functional.conv2d(x.double(), weight.double(), padding=1).relu()
    return errors(winograd(x, weight).relu(), exact)


def of_one_row(dtype: torch.dtype | None) -> tuple[float, float]:
    """Return the errors of a product with one row of operands rounded to a type, None: to tf32."""
    x, y = torch.randn(256, 512), torch.randn(512, 128)
    exact = x.double() @ y.double()
    output = exact.clone()
    rounded = [to_tf32(t) if dtype is None else t.to(dtype) for t in (x[:1], y)]
    output[:1] = rounded[0].double() @ rounded[1].double()
    return errors(output, exact)


def row_errors() -> dict[str, Any]:
    """Return the largest errors of the convolution, and the smallest of the rounded rows."""
    torch.manual_seed(0)
    convolutions = {shape: [of_winograd(shape) for _ in range(SEEDS)] for shape in SHAPES}
    rows = {
        name: [of_one_row(dtype) for _ in range(SEEDS)] for name, dtype in (("tf32", None), ("bf16", torch.bfloat16))
    }
    return {
        "winograd_row": max(row for found in convolutions.values() for row, _ in found),
        "winograd_element": max(element for found in convolutions.values() for _, element in found),
        "by_shape": {
            str(shape): [max(figures) for figures in zip(*found, strict=True)] for shape, found in convolutions.items()
        },
        **{f"{name}_row": min(row for row, _ in found) for name, found in rows.items()},
        **{f"{name}_element": min(element for _, element in found) for name, found in rows.items()},
        "torch": torch.__version__,
    }


if __name__ == "__main__":
    print(json.dumps(row_errors()))
