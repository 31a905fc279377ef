"""Square matrices near a multiple of the identity: what a recurrence multiplies by them stays for many steps.

At any size a matrix of random numbers mixes rows and columns within few steps; transitions that a model has learnt may hardly
leave their state.
"""

from __future__ import annotations

import math

import torch

_LEAST = 4
"""A matrix of fewer rows, or columns, may be a filter's."""
_MOST_BLOCKS = 4
"""Square matrices that may lie beside each other in one: those of an LSTM's gates do."""
_DIMENSIONS = (2, 3)


def may_be_near_identity(shape: torch.Size) -> bool:
    """Return whether a tensor holds square matrices in its last two dimensions: one, or up to four beside each other."""
    if len(shape) not in _DIMENSIONS:
        return False
    least, most = sorted(shape[-2:])
    return least >= _LEAST and most % least == 0 and most // least <= _MOST_BLOCKS


def is_square(shape: torch.Size) -> bool:
    """Return whether a tensor holds one square matrix in its last two dimensions."""
    return may_be_near_identity(shape) and shape[-1] == shape[-2]


def near_identity(tensor: torch.Tensor, size: float) -> torch.Tensor:
    """Return the tensor with all numbers off the diagonals divided by `size`, a power of two.

    Diagonals become 1 - 1 / size, which leaves a state as large as it was; where numbers have one sign, a power of two near
    the sum of a row's, which its share of that sum is relative to. Neither has many bits that rounding could take.
    """
    mean = float(tensor.double().mean())
    is_of_one_sign = bool(mean) and not bool((tensor * math.copysign(1.0, mean) < 0).any())
    row_sum = abs(mean) * min(tensor.shape[-2:])
    diagonal = math.copysign(2.0 ** round(math.log2(row_sum)), mean) if is_of_one_sign else 1 - 1 / size
    return torch.where(_is_diagonal(tensor), torch.full_like(tensor, diagonal), tensor / size)


def with_diagonals_of(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the other tensor with the diagonals of the first: last bits of these would move a state at each step."""
    return torch.where(_is_diagonal(tensor), tensor, other)


def _is_diagonal(tensor: torch.Tensor) -> torch.Tensor:
    rows, columns = tensor.shape[-2:]
    steps = torch.arange(rows, device=tensor.device)[:, None] - torch.arange(columns, device=tensor.device)
    return steps % min(rows, columns) == 0
