"""Rows that are near each other: what a kernel of distances needs to be more than each row by itself.

Random rows of many columns are all far from each other. An affinity that falls off before the nearest of them is the identity,
and whoever leaves it out is right.
"""

from __future__ import annotations

import math

import torch

from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.values.structure import has_structural_zeros, is_binary, is_symmetric, order_of

_CHANGED = 1 / 2
"""Part of the rows of a matrix that are brought near others."""
_ACROSS = 1 / 2
"""Part of those that are brought near rows of an earlier input, where one has rows of the same form."""

Form = tuple[torch.Size, int, torch.dtype]


def may_have_near_rows(tensor: torch.Tensor) -> bool:
    """Return whether rows may be brought near others: of numbers that are no mask, in no order and not symmetric."""
    if tensor.dim() < 2 or tensor.shape[-2] < 2 or not tensor.numel() or not tensor.is_floating_point():
        return False
    return is_finite(tensor) and not (is_binary(tensor) or is_symmetric(tensor) or order_of(tensor))


def form_of_rows(tensor: torch.Tensor) -> Form:
    """Return what two inputs have in common whose rows may be near each other."""
    return tensor.shape[:-2], tensor.shape[-1], tensor.dtype


class NearRows:
    """Brings rows of each input that it is called with near others of its own, and of the first one with such rows."""

    def __init__(self, size: float) -> None:
        """Bring them so near that 1/2 of their difference is left, or 1/4 and so on to 1 / size, a power of two."""
        self._most_halvings = max(1, round(math.log2(size)))
        self._firsts: dict[Form, torch.Tensor] = {}

    def __call__(self, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the tensor with a secret half of each matrix's rows near others; zeros that are structure stay."""
        if not may_have_near_rows(tensor):
            return tensor
        *batch, rows, columns = tensor.shape
        matrices = tensor.reshape(-1, rows, columns)
        first = self._firsts.get(form_of_rows(tensor))
        order = torch.rand((len(matrices), rows), generator=generator, device=generator.device).argsort(-1)
        chosen, kept = order.tensor_split([int(rows * _CHANGED)], dim=1)
        own, near = _rows_of(matrices, chosen), _some_of(matrices, kept, chosen.shape, generator)
        if first is not None:
            every = torch.arange(first.shape[-2], device=first.device).expand(len(matrices), -1)
            across = _some_of(first.reshape(len(matrices), -1, columns), every, chosen.shape, generator)
            is_across = torch.rand(chosen.shape, generator=generator, device=generator.device) < _ACROSS
            near = torch.where(is_across.unsqueeze(-1), across, near)
        halvings = torch.randint(1, self._most_halvings + 1, chosen.shape, generator=generator, device=generator.device)
        moved = near + (own - near) * torch.exp2(-halvings.double()).to(tensor.dtype).unsqueeze(-1)
        found = matrices.scatter(1, chosen.unsqueeze(-1).expand_as(moved), moved).view(*batch, rows, columns)
        found = torch.where(tensor == 0, tensor, found) if has_structural_zeros(tensor) else found
        self._firsts.setdefault(form_of_rows(tensor), found)
        return found


def _rows_of(matrices: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return matrices.gather(1, places.unsqueeze(-1).expand(-1, -1, matrices.shape[-1]))


def _some_of(
    matrices: torch.Tensor, places: torch.Tensor, shape: torch.Size, generator: torch.Generator
) -> torch.Tensor:
    """Return secret ones of these rows of each matrix."""
    drawn = torch.randint(places.shape[1], shape, generator=generator, device=generator.device)
    return _rows_of(matrices, places.gather(1, drawn))
