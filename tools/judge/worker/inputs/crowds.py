"""Inputs most of whose numbers are one of them: what counts them, or has room for so many of each, has to hold that.

Rows are crowded around numbers of their own, or all of them around the largest: sums of those need the most room.
"""

from __future__ import annotations

import functools

import torch

from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.structure import (
    has_structural_zeros,
    is_binary,
    is_symmetric,
    range_of_whole,
)
from ridgeline.tools.judge.worker.inputs.transforms import random_index
from ridgeline.tools.judge.worker.inputs.variation import Way
from ridgeline.tools.records.trial_names import CROWDED_HIGH

_CROWDED = 15 / 16
"""Largest share of the elements of a row that are made one number; in one secret row all may be."""
_OWN_ROWS = 1 / 2
"""Share of the rows whose number is one of their own."""


def ways_to_crowd(trial: str, tensor: torch.Tensor, *, is_alike: bool) -> tuple[Way, ...]:
    """Return the ways to make most of an input's numbers one of them, the widest first; none where structure forbids it.

    Of whole numbers that are always alike that is their lowest, which is valid in the place of any; their largest may not
    be. Floating-point numbers get no row of one alone, whose variance would be a rounding error.
    """
    is_whole = range_of_whole(tensor) is not None
    if tensor.numel() < 2 or not (is_whole or tensor.is_floating_point() and not _has_structure(tensor)):
        return ()
    if trial == CROWDED_HIGH:
        return () if is_whole and is_alike else (_crowded_high,)
    if not is_whole:
        return (functools.partial(_crowded, has_row=False, has_lowest=False),)
    has_rows = (True, False) if tensor.dim() > 1 else (False,)
    return tuple(functools.partial(_crowded, has_row=has_row, has_lowest=is_alike) for has_row in has_rows)


def _has_structure(tensor: torch.Tensor) -> bool:
    return not is_finite(tensor) or is_binary(tensor) or is_symmetric(tensor) or has_structural_zeros(tensor)


def _crowded(tensor: torch.Tensor, generator: torch.Generator, *, has_row: bool, has_lowest: bool) -> torch.Tensor:
    """Return numbers that are mostly a secret one, or the lowest, in each row to another share.

    In about half of the rows it is one of the row's own: else that of all rows is above 0, or not, by chance. With
    `has_row` a secret row holds the number nearest to zero alone: a row without variance, whose mean is exact.
    """
    value = tensor.min() if has_lowest else tensor[random_index(tensor.shape, generator)]
    if tensor.dim() > 1 and not has_lowest:
        rows = (*tensor.shape[:-1], 1)
        places = torch.randint(tensor.shape[-1], rows, generator=generator, device=generator.device)
        is_own = torch.rand(rows, generator=generator, device=generator.device) < _OWN_ROWS
        value = torch.where(is_own, tensor.gather(-1, places), value)
    shares = torch.rand((*tensor.shape[:-1], 1), generator=generator, device=generator.device)
    most = _CROWDED * (1 - shares * shares) if tensor.dim() > 1 else _CROWDED
    is_one = torch.rand(tensor.shape, generator=generator, device=generator.device) < most
    changed = torch.where(is_one, value, tensor)
    if has_row:
        changed[random_index(tensor.shape[:-1], generator)] = _nearest_to_zero(tensor)
    return changed


def _crowded_high(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return numbers that are mostly the largest of them all, in every row."""
    is_largest = torch.rand(tensor.shape, generator=generator, device=generator.device) < _CROWDED
    return torch.where(is_largest, tensor.max(), tensor)


def _nearest_to_zero(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.flatten()
    return flat[flat.double().abs().argmin()]
