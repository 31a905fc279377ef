"""NaN and infinities among an input's numbers: what a reference does with them shows nowhere else.

`get_inputs` gives tables without gaps, and gradients that never overflow. Missing values come alone and as whole rows or
columns, and a single number decides where all of them have to be finite.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.values.structure import row_axis

KINDS = (math.nan, math.inf, -math.inf)
_WITHOUT = 1 / 2
"""Share of the rows that hold usual numbers alone."""
_WHOLLY = 1 / 16
"""Share of the lines along a dimension that hold nothing finite."""
_FEWEST_LINES = 8
"""Lines along a dimension, of which some may hold nothing finite: beside fewer, little of an input would be left."""

Kinds = Mapping[int, Sequence[float]]
"""What inputs may hold, of NaN and both infinities, by position."""


def may_be_not_finite(inputs: Tensors, forms: Sequence[InputForm], free: Collection[int]) -> tuple[int, ...]:
    """Return the inputs of floating-point numbers in no order."""
    return tuple(i for i in free if inputs[i].is_floating_point() and inputs[i].numel() and not forms[i].order)


def long_axes(shape: torch.Size) -> tuple[int, ...]:
    """Return the dimensions along which lines may hold nothing finite, where there are lines enough."""
    return tuple(d for d, size in enumerate(shape) if size > 1 and shape.numel() // size >= _FEWEST_LINES)


def with_not_finite(
    inputs: Tensors, generator: torch.Generator, *, kinds: Kinds, wholly: Collection[tuple[int, int]] = ()
) -> Tensors:
    """Return inputs some of whose rows hold NaN or infinities, from one in a row to nearly all.

    `wholly` has the inputs and dimensions along which some lines hold nothing else; along others no line does.
    """
    changed = list(inputs)
    for i in sorted(kinds):
        changed[i] = _with_gaps(inputs[i], generator, kinds[i], [axis for of, axis in wholly if of == i])
    return tuple(changed)


def with_one_not_finite(inputs: Tensors, generator: torch.Generator, *, kinds: Kinds) -> Tensors:
    """Return inputs of which a secret one holds NaN, or an infinity, at a secret place."""
    chosen = sorted(kinds)[_drawn(len(kinds), generator)]
    changed = inputs[chosen].clone(memory_format=torch.contiguous_format)
    changed.view(-1)[_drawn(changed.numel(), generator)] = kinds[chosen][_drawn(len(kinds[chosen]), generator)]
    return tuple(changed if i == chosen else t for i, t in enumerate(inputs))


def _with_gaps(
    tensor: torch.Tensor, generator: torch.Generator, kinds: Sequence[float], wholly: Sequence[int]
) -> torch.Tensor:
    """Return an input with gaps of these kinds: of one kind in most rows that have any, of each place's own in the others."""
    shape, row = tensor.shape, row_axis(tensor)
    of_rows = _across(shape, row)
    is_gap = _uniform(shape, generator) < _densities(of_rows, shape[row] if shape else 1, generator)
    kind = _choices(of_rows, len(kinds) + 1, generator)
    kind = torch.where(kind < len(kinds), kind, _choices(shape, len(kinds), generator))
    is_line = torch.zeros_like(is_gap)
    for axis in wholly:
        of_lines = _across(shape, axis)
        is_one = _with_one(_uniform(of_lines, generator) < _WHOLLY, generator)
        is_line, kind = is_line | is_one, torch.where(is_one, _choices(of_lines, len(kinds), generator), kind)
    for axis in (axis for axis, size in enumerate(shape) if size > 1 and axis not in wholly):
        is_line &= ~is_line.all(axis, keepdim=True)
        is_gap &= ~(is_gap | is_line).all(axis, keepdim=True)
    is_gap |= is_line
    for choice, number in enumerate(kinds):
        tensor = tensor.masked_fill(is_gap & (kind == choice), number)
    return tensor


def _densities(of_rows: Sequence[int], width: int, generator: torch.Generator) -> torch.Tensor:
    """Return the share of gaps in each row: none in half of them, half in a secret one, a power of the width in others."""
    density = (2 * width) ** -_uniform(of_rows, generator)
    density = torch.where(_uniform(of_rows, generator) < _WITHOUT, 0.0, density)
    return torch.where(_with_one(torch.zeros_like(density, dtype=torch.bool), generator), 1 / 2, density)


def _with_one(is_chosen: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return what is chosen, and a secret one beside."""
    is_chosen.view(-1)[_drawn(is_chosen.numel(), generator)] = True
    return is_chosen


def _across(shape: torch.Size, axis: int) -> list[int]:
    """Return the shape of one number for each line along a dimension."""
    sizes = list(shape)
    if sizes:
        sizes[axis] = 1
    return sizes


def _uniform(shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    return torch.rand(tuple(shape), generator=generator, device=generator.device)


def _choices(shape: Sequence[int], count: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(count, tuple(shape), dtype=torch.uint8, generator=generator, device=generator.device)


def _drawn(count: int, generator: torch.Generator) -> int:
    return int(torch.randint(count, (), generator=generator, device=generator.device))
