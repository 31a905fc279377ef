"""Zeros at other places than those in which a draw has them: padding, holes, what a mask or a ReLU left.

Zeros whose places differ between draws are no structure, as those of a triangle are. So a kernel may not rely on their
shape either: on padding that is always at a row's end, on rows that are never empty, or never full.
"""

from __future__ import annotations

import functools
import itertools

import torch

from ridgeline.tools.judge.worker.inputs.values.permutations import uniform
from ridgeline.tools.judge.worker.inputs.values.structure import has_structural_zeros, is_symmetric
from ridgeline.tools.judge.worker.inputs.variation import Way

_ROWS = 1 / 16
"""Share of the rows (the last dimension) that are emptied, and share of those that are filled."""
_ELEMENTS = 1 / 16


def are_padded(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two draws of floating-point numbers have many zeros, each at places of its own."""
    if not first.is_floating_point() or first.dim() == 0 or is_symmetric(first):
        return False
    have_zeros = has_structural_zeros(first) and has_structural_zeros(second)
    return have_zeros and not torch.equal(first == 0, second == 0)


def ways_of_zeros() -> tuple[Way, ...]:
    """Return the ways to place zeros anew, the widest first: more and fewer, or only more, each with empty rows or without."""
    kinds = itertools.product((True, False), repeat=2)
    return tuple(functools.partial(_other_zeros, fills=fills, empties=empties) for fills, empties in kinds)


def _other_zeros(tensor: torch.Tensor, generator: torch.Generator, *, fills: bool, empties: bool) -> torch.Tensor:
    """Return the tensor with zeros in place of some numbers, and, where it `fills`, its own numbers in place of some zeros."""
    is_zero = tensor == 0
    drawn, elements = uniform((*tensor.shape[:-1], 1), generator), uniform(tensor.shape, generator) < _ELEMENTS
    is_emptied, is_filled = drawn < _ROWS * (empties and tensor.dim() > 1), drawn > 1 - _ROWS
    changed = torch.where(is_emptied | elements, 0, tensor)
    if not fills:
        return changed
    numbers = tensor[~is_zero]
    if not numbers.numel():
        return changed
    places = torch.randint(numbers.numel(), tensor.shape, generator=generator, device=generator.device)
    return torch.where(is_zero & (is_filled | elements), numbers[places], changed)
