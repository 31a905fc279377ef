"""Sums, products and running sums in float32 by a few lanes, each adding one term after the other, as plain kernels do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from torch.nn import functional as F

from ridgeline.tools.records.precision import LONGEST_FEW, LONGEST_LANE, PLAIN_LANES

_MOST_PRODUCTS = 1 << 33
"""Multiplications of a product that is made plain at most: some ten seconds of a core."""
_TILE = 1 << 16
"""Sums that are made at once: they stay in a core's cache."""


class Moments(StrEnum):
    """Ways to make a mean and the squares about it."""

    TWICE = "in two passes"
    CHAINED = "in one chain"
    SHIFTED = "about the first number"


@dataclass(frozen=True, slots=True)
class Lanes:
    """Adds in float32 by so many lanes; terms are multiplied by `scale` first, and what is added up is divided by it.

    Where most terms are alike, each addition rounds alike, by what that one number is: another scale rounds otherwise.
    """

    count: int
    scale: float = 1.0
    moments: Moments = Moments.TWICE
    makes_products: bool = True  # else these are left as they are

    def sum(self, terms: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
        """Return a sum over dimensions.

        A lane has `LONGEST_LANE` terms at most, and one that is alone `LONGEST_FEW`: who adds more than that has threads, or
        vectors. Where the last dimension stays, a kernel's lanes lie along it, and each sum has only one for the smallest
        number of them.
        """
        kept = [d for d in range(terms.dim()) if d not in dims]
        is_along = bool(kept) and kept[-1] == terms.dim() - 1 and terms.shape[-1] > 1
        rows = self._scaled(terms).permute(*dims, *kept).reshape(math.prod(terms.shape[d] for d in dims), -1)
        lanes = self._for(len(rows), is_along=is_along)
        missing = -len(rows) % lanes
        if missing:
            rows = torch.cat([rows, rows.new_zeros(missing, rows.shape[1])])
        steps = rows.reshape(-1, lanes, rows.shape[1])
        sums = steps[0].clone()
        for step in itertools.islice(steps, 1, None):
            sums += step
        return _in_pairs(sums).div_(self.scale).reshape([terms.shape[d] for d in kept])

    def product(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
        """Return the products (batch, rows, columns) of (batch, rows, inner) and (batch, inner, columns).

        None where that would take too long. With several columns a kernel's lanes lie along them: those of fewer lanes than
        are usual would be the same once more, as would those of other moments, and are None too.
        """
        (batch, rows, inner), columns = first.shape, second.shape[-1]
        count = batch * rows * columns * inner
        is_again = self.moments is not Moments.TWICE or (columns > 1 and self.count < min(PLAIN_LANES))
        if not self.makes_products or not count or count > _MOST_PRODUCTS or is_again:
            return None
        lanes = self._for(inner, is_along=columns > 1)
        missing = -inner % lanes
        left = F.pad(self._scaled(first), (0, missing)).reshape(batch, rows, -1, lanes)
        right = F.pad(second.float(), (0, 0, 0, missing)).reshape(batch, -1, lanes, columns)
        left, right = left.permute(2, 3, 0, 1).contiguous(), right.permute(1, 2, 0, 3).contiguous()
        made = first.new_empty((batch, rows, columns), dtype=torch.float32)
        tile_rows = max(1, min(rows, _TILE // (columns * lanes)))
        tile_batch = max(1, _TILE // (columns * lanes * rows)) if tile_rows == rows else 1
        for at, row in itertools.product(range(0, batch, tile_batch), range(0, rows, tile_rows)):
            terms = left[:, :, at : at + tile_batch, row : row + tile_rows, None]
            others = right[:, :, at : at + tile_batch, None, :]
            sums = torch.zeros_like(terms[0] * others[0])
            for one, other in zip(terms, others, strict=True):
                sums.addcmul_(one, other)
            made[at : at + tile_batch, row : row + tile_rows] = _in_pairs(sums)
        return made.div_(self.scale)

    def running_sum(self, terms: torch.Tensor, dim: int) -> torch.Tensor:
        """Return running sums, each the one before it and one term more.

        PyTorch's own are in float64 on a CPU, numpy's are plain. A running sum has one lane, so that is four times as long as
        `LONGEST_LANE` at most: longer rows are pieces, to each of which the sum of those before it is added.
        """
        rows = self._scaled(terms).movedim(dim, -1)
        total = torch.zeros_like(rows[..., :1])
        pieces = []
        for piece in torch.split(rows, 4 * LONGEST_LANE, dim=-1):
            sums = torch.from_numpy(np.add.accumulate(piece.contiguous().numpy(), axis=-1)) + total
            total = sums[..., -1:]
            pieces.append(sums)
        return torch.cat(pieces, dim=-1).div_(self.scale).movedim(-1, dim)

    def _scaled(self, terms: torch.Tensor) -> torch.Tensor:
        """Return terms times the scale, in float32: in bf16 the products would be rounded once more."""
        return (terms.to(torch.promote_types(terms.dtype, torch.float32)) * self.scale).float()

    def _for(self, terms: int, *, is_along: bool) -> int:
        least = min(PLAIN_LANES)
        if self.count < least:
            return max(self.count, math.ceil(terms / LONGEST_FEW))
        return max(1 if is_along and self.count == least else self.count, math.ceil(terms / LONGEST_LANE))


def _in_pairs(sums: torch.Tensor) -> torch.Tensor:
    """Return the sum of lanes along the first dimension, each half added to the other."""
    while len(sums) > 1:
        half = len(sums) // 2
        sums = torch.cat([sums[:half] + sums[half : 2 * half], sums[2 * half :]])
    return sums[0]
