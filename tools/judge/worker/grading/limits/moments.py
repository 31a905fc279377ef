"""The mean and the squares about it in float32, as plain kernels make them: in two passes, from one chain, or shifted.

Each is a textbook's way to normalise. A chain (Welford, 1962) adds one term after the other, and squares about a row's first
number lose what its distance from the mean is beside the deviation. Squares about zero lose a large mean's: no way here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from ridgeline.tools.judge.worker.grading.limits.lanes import Lanes, Moments

_LONGEST_CHAIN = 1 << 14
"""Terms of a chain at most: each is a step of its own, and a longer one is asked for in every trial."""


def moments_of(terms: torch.Tensor, dims: Sequence[int], lanes: Lanes) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean and the sum of squares about it over dimensions, which stay, in the terms' type."""
    kept = [1 if d in dims else size for d, size in enumerate(terms.shape)]
    count = math.prod(terms.shape[d] for d in dims)

    def total(values: torch.Tensor) -> torch.Tensor:
        return lanes.sum(values, dims).to(terms.dtype).reshape(kept)

    if lanes.moments is Moments.CHAINED and count <= _LONGEST_CHAIN:
        mean, squares = _chained(_as_steps(terms, dims))
        return mean.to(terms.dtype).reshape(kept), squares.to(terms.dtype).reshape(kept)
    if lanes.moments is Moments.SHIFTED:
        first = terms[tuple(slice(1) if d in dims else slice(None) for d in range(terms.dim()))]
        moved = (terms - first).float().to(terms.dtype)
        off = (total(moved) / count).float()
        squares = (total(moved**2) / count).float() - off * off
        return first + off.to(terms.dtype), squares.clamp(min=0).to(terms.dtype) * count
    mean = total(terms) / count
    return mean, total((terms - mean) ** 2)


def _as_steps(terms: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    kept = [d for d in range(terms.dim()) if d not in dims]
    return terms.float().permute(*dims, *kept).reshape(math.prod(terms.shape[d] for d in dims), -1)


def _chained(steps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean and the squares about it of each column, in one chain; numpy is faster on few columns."""
    values, counts = steps.contiguous().numpy(), np.arange(1, len(steps) + 1, dtype=np.float32)[:, None]
    mean, squares = np.zeros_like(values[0]), np.zeros_like(values[0])
    before, after = np.empty_like(mean), np.empty_like(mean)
    for value, number in zip(values, counts, strict=True):
        np.subtract(value, mean, out=before)
        np.divide(before, number, out=after)
        np.add(mean, after, out=mean)
        np.subtract(value, mean, out=after)
        np.multiply(before, after, out=after)
        np.add(squares, after, out=squares)
    return torch.from_numpy(mean), torch.from_numpy(squares)
