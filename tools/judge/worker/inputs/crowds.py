"""Whole numbers that fall on few values: what counts them, or has room for so many of each, has to hold that."""

from __future__ import annotations

import functools

import torch

from ridgeline.tools.judge.worker.inputs.structure import range_of_whole
from ridgeline.tools.judge.worker.inputs.transforms import random_index
from ridgeline.tools.judge.worker.inputs.variation import Way

_CROWDED = 15 / 16
"""Largest share of the elements of a row that are made one number; in one secret row all may be."""


def ways_to_crowd(tensor: torch.Tensor, *, is_alike: bool) -> tuple[Way, ...]:
    """Return the ways to make most of an input's whole numbers one of them, the widest first; none of anything else.

    Of an input that is always alike that is its lowest, which is valid in the place of any.
    """
    if tensor.numel() < 2 or range_of_whole(tensor) is None:
        return ()
    has_rows = (True, False) if tensor.dim() > 1 else (False,)
    return tuple(functools.partial(_crowded, has_row=has_row, has_lowest=is_alike) for has_row in has_rows)


def _crowded(tensor: torch.Tensor, generator: torch.Generator, *, has_row: bool, has_lowest: bool) -> torch.Tensor:
    """Return whole numbers that are mostly a secret one, or the lowest, in each row to another share.

    With `has_row` a secret row holds the number nearest to zero alone: a row without variance, whose mean is exact.
    """
    value = tensor.min() if has_lowest else tensor[random_index(tensor.shape, generator)]
    shares = torch.rand((*tensor.shape[:-1], 1), generator=generator, device=generator.device)
    most = _CROWDED * (1 - shares * shares) if tensor.dim() > 1 else _CROWDED
    is_one = torch.rand(tensor.shape, generator=generator, device=generator.device) < most
    changed = torch.where(is_one, value, tensor)
    if has_row:
        changed[random_index(tensor.shape[:-1], generator)] = _nearest_to_zero(tensor)
    return changed


def _nearest_to_zero(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.flatten()
    return flat[flat.double().abs().argmin()]
