"""Rows and single numbers that are tiny beside all others, and rows of zeros: what an epsilon shows beside, or a least size.

Drawn numbers are zero or of about one size. Beside these an epsilon within a root, beside it or nowhere is one and the same,
and of no drawn row is the largest number a zero to divide by.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.values.structure import is_symmetric

_ROWS = 1 / 4
"""Part of the rows that are tiny."""
_ZEROS = 1 / 16
"""Part of the rows that are zeros, one at least of several."""
_NUMBERS = 1 / 64
"""Part of the numbers that are tiny by themselves."""
_FEWEST_HALVINGS = 5.0
"""Halvings of the largest of these: sizes from there on come in the trial `row_scaled`."""
_HERE = 1 / 2
"""Part of such rows, and numbers, that are tiny, or zeros, in one of several inputs of a shape."""


def may_be_tiny(inputs: Tensors, forms: Sequence[InputForm], free: Sequence[int]) -> tuple[int, ...]:
    """Return the inputs that may have tiny numbers: floating-point ones that are no mask, in no order and not symmetric."""
    return tuple(
        i
        for i in free
        if inputs[i].is_floating_point() and inputs[i].numel() > 1
        if not (forms[i].is_mask or forms[i].order or is_symmetric(inputs[i]))
    )


def with_tiny_numbers(
    inputs: Tensors,
    generator: torch.Generator,
    *,
    halvings: Mapping[int, float],
    zeros: Collection[int] = (),
    zero: float = 0.0,
) -> Tensors:
    """Return inputs some of whose rows, and single numbers, were halved, by input up to so many times.

    Several of one shape have them at the same places and by the same factors, each at half of these: a gradient is tiny
    together with its square's mean, or beside it. What its type would hold with fewer bits stays as it was. Those of `zeros`
    have rows of zeros as well, of this sign.
    """
    changed = list(inputs)
    for same in _of_one_shape(inputs, halvings):
        parts = _tiny_parts(inputs[same[0]].shape, generator)
        for i in same:
            tensor, most = inputs[i], halvings[i]
            for is_tiny, how_far in parts:
                is_here = is_tiny & (_uniform(is_tiny.shape, generator) < (_HERE if len(same) > 1 else 1))
                by = torch.exp2(-(_FEWEST_HALVINGS + (most - _FEWEST_HALVINGS) * how_far)).to(tensor.dtype)
                tensor = torch.where(is_here, tensor * by, tensor)
            is_held = tensor.abs() >= torch.finfo(tensor.dtype).tiny
            changed[i] = torch.where(is_held, tensor, inputs[i])
    for same in _of_one_shape(inputs, zeros):
        rows = _rows_of(inputs[same[0]].shape)
        is_zero = _some_rows(rows, int(max(1, rows.numel() * _ZEROS)) if rows.numel() > 1 else 0, generator)
        for i in same:
            is_here = is_zero & (_uniform(rows, generator) < (_HERE if len(same) > 1 else 1))
            changed[i] = changed[i].masked_fill(is_here, zero)
    return tuple(changed)


def _of_one_shape(inputs: Tensors, chosen: Collection[int]) -> Iterator[list[int]]:
    """Give the chosen inputs, those of one shape together."""
    for shape in dict.fromkeys(inputs[i].shape for i in chosen):
        yield sorted(i for i in chosen if inputs[i].shape == shape)


def _rows_of(shape: torch.Size) -> torch.Size:
    """Return the shape of what is a number for each row; each of one dimension is a row."""
    return torch.Size((*shape[:-1], 1)) if len(shape) > 1 else shape


def _some_rows(rows: torch.Size, count: int, generator: torch.Generator) -> torch.Tensor:
    """Return which rows are so many secret ones."""
    order = torch.rand(rows.numel(), generator=generator, device=generator.device).argsort()
    return (order < count).view(rows)


def _tiny_parts(
    shape: torch.Size, generator: torch.Generator
) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Return which rows are tiny, and how far each is, from 0 to 1; then the same of single numbers."""
    rows = _rows_of(shape)
    is_tiny_row = _some_rows(rows, math.ceil(rows.numel() * _ROWS), generator)
    is_tiny = _uniform(shape, generator) < _NUMBERS
    return (is_tiny_row, _uniform(rows, generator)), (is_tiny & ~is_tiny_row, _uniform(shape, generator))


def _uniform(shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=generator, device=generator.device)
