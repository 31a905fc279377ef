"""Square matrices of a structure that random numbers have not: near the identity, with large diagonals, along a line.

At any size a matrix of random numbers mixes rows and columns within few steps; transitions that a model has learnt may hardly
leave their state, or go on to one other each. Where a softmax, or a constant beside them, evens out what is small, large
diagonals do so. Where neighbours alone are near each other, each end is as many steps from the other as there are rows. Whole
numbers stay within their range.
"""

from __future__ import annotations

import itertools
import math

import torch

from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.values.structure import (
    has_structural_zeros,
    is_symmetric,
    range_without_sentinels,
    with_sentinels_of,
)

_LEAST_BLOCK = 4
"""Of matrices beside each other in one, the fewest rows or columns."""
_LEAST_OF_FOUR = 8
"""The fewest rows of a square matrix in a tensor of four dimensions: smaller ones are filters."""
_MOST_BLOCKS = 4
"""Square matrices that may lie beside each other in one: those of an LSTM's gates do."""
_MOVED_BY_TWO = 2.0
"""What numbers of either sign beyond a band are moved by for each factor of two of its size, times the rms or 1: logits begin
small."""
_LARGEST_POWER = 1000
"""Of two, in a diagonal: Python's float ends at 2^1024."""

Axes = tuple[int, int]
"""The two dimensions of a tensor between which a matrix maps."""


def matrix_axes(shape: torch.Size) -> Axes | None:
    """Return the dimensions of a tensor's square matrices, the largest of several; of those beside each other the last."""
    if not 2 <= len(shape) <= 4:
        return None
    least = _LEAST_OF_FOUR if len(shape) == 4 else 2
    square = [axes for axes in itertools.combinations(range(len(shape)), 2) if _is_square(shape, axes, least)]
    if square:
        return max(square, key=lambda axes: (shape[axes[0]], axes))
    least, most = sorted(shape[-2:])
    is_of_blocks = len(shape) < 4 and least >= _LEAST_BLOCK and most % least == 0 and most // least <= _MOST_BLOCKS
    return (len(shape) - 2, len(shape) - 1) if is_of_blocks else None


def is_square(shape: torch.Size) -> bool:
    """Return whether a tensor of two or three dimensions holds one square matrix, or several."""
    axes = matrix_axes(shape) if len(shape) < 4 else None
    return axes is not None and shape[axes[0]] == shape[axes[1]]


def near_identity(tensor: torch.Tensor, size: float, *, shift: int = 0) -> torch.Tensor:
    """Return the tensor with all numbers off the diagonals divided by `size`, a power of two.

    Diagonals become 1 - 1 / size, which leaves a state as large as it was; where numbers have one sign, a power of two near
    the sum of a row's, which its share of that sum is relative to. Neither has many bits that rounding could take. With a
    `shift` a state goes on to another one in each step, unless the matrix has zeros or a symmetry to keep. Of whole numbers
    diagonals become the one furthest from zero, and others as much nearer to the one nearest to zero.
    """
    if not tensor.is_floating_point():
        return _whole_near_identity(tensor, int(size), shift)
    return _with_diagonals(tensor, shift, of_either_sign=1 - 1 / size, times_a_sum=1.0, others=1 / size)


def with_large_diagonals(tensor: torch.Tensor, steps: float) -> torch.Tensor:
    """Return the tensor with diagonals of `steps` / 2; where numbers have one sign, 2^(steps / 2) times the sum of a row."""
    return _with_diagonals(tensor, 0, of_either_sign=steps / 2, times_a_sum=2.0 ** (steps // 2), others=1.0)


def with_band(tensor: torch.Tensor, size: float, *, is_high: bool) -> torch.Tensor:
    """Return the tensor with its numbers beyond the diagonals and their neighbours moved to one side.

    Those of one sign are divided by `size`, a power of two; `is_high`: that many times their mean is added to them. Others get
    less, or more, by `_MOVED_BY_TWO` x max(1, rms) for each factor of two. Whole numbers come nearer to the smallest by that
    factor, and those within the band to the largest; `is_high`: the other way round. Zeros that are structure stay.
    """
    if not tensor.is_floating_point():
        return _whole_with_band(tensor, int(size), is_high=is_high)
    axes = matrix_axes(tensor.shape)
    if axes is None or not tensor.numel() or not is_finite(tensor):
        return tensor
    values = tensor.double()
    mean, rms = float(values.mean()), max(1.0, float(values.square().mean().sqrt()))
    if not _is_of_one_sign(tensor, mean):
        far = values + math.copysign(_MOVED_BY_TWO * math.log2(size) * rms, 1 if is_high else -1)
    else:
        far = values + size * mean if is_high else values / size
    limits = torch.finfo(tensor.dtype)
    far = far.clamp(limits.min, limits.max).to(tensor.dtype)
    near = _steps_between(tensor, axes).abs() <= 1
    if has_structural_zeros(tensor):
        near = near | (tensor == 0)
    return torch.where(near, tensor, far)


def with_diagonals_of(tensor: torch.Tensor, other: torch.Tensor, *, shift: int = 0) -> torch.Tensor:
    """Return the other tensor with the diagonals of the first: last bits of these would move a state at each step."""
    axes = matrix_axes(tensor.shape)
    return other if axes is None else torch.where(_set_places(tensor, axes, shift), tensor, other)


def _is_square(shape: torch.Size, axes: Axes, least: int) -> bool:
    return shape[axes[0]] == shape[axes[1]] >= least


def _with_diagonals(
    tensor: torch.Tensor, shift: int, *, of_either_sign: float, times_a_sum: float, others: float
) -> torch.Tensor:
    axes = matrix_axes(tensor.shape)
    if axes is None or not tensor.numel() or not is_finite(tensor):
        return tensor  # empty, or a mask of infinities
    mean, least = float(tensor.double().mean()), min(tensor.shape[axis] for axis in axes)
    is_of_one_sign = _is_of_one_sign(tensor, mean)
    row_sum = 2.0 ** min(round(math.log2(abs(mean) * least)), _LARGEST_POWER) if is_of_one_sign else 0.0
    row_sum = min(times_a_sum * row_sum, torch.finfo(tensor.dtype).max)
    diagonal = math.copysign(row_sum, mean) if is_of_one_sign else of_either_sign
    return torch.where(_set_places(tensor, axes, shift), torch.full_like(tensor, diagonal), tensor * others)


def _set_places(tensor: torch.Tensor, axes: Axes, shift: int) -> torch.Tensor:
    """Return which places of a tensor are set to a diagonal: none of its zeros that are structure."""
    has_zeros, least = has_structural_zeros(tensor), min(tensor.shape[axis] for axis in axes)
    places = _diagonal(tensor, axes, 0 if has_zeros or is_symmetric(tensor) else shift % least)
    return places & (tensor != 0) if has_zeros else places


def _whole_near_identity(tensor: torch.Tensor, size: int, shift: int) -> torch.Tensor:
    axes, ends = matrix_axes(tensor.shape), _ends_of(tensor)
    if axes is None or ends is None:
        return tensor
    nearest, furthest = sorted((min(max(0, ends[0]), ends[1]), *ends), key=abs)[::2]
    has_zeros = has_structural_zeros(tensor)
    places = _diagonal(tensor, axes, 0 if has_zeros or is_symmetric(tensor) else shift)
    changed = torch.where(places, torch.full_like(tensor, furthest), _brought_near(tensor, nearest, size))
    return torch.where(tensor == 0, tensor, changed) if has_zeros else changed


def _whole_with_band(tensor: torch.Tensor, size: int, *, is_high: bool) -> torch.Tensor:
    axes, ends = matrix_axes(tensor.shape), _ends_of(tensor)
    if axes is None or ends is None:
        return tensor
    beyond, within = (_brought_near(tensor, end, size) for end in (reversed(ends) if is_high else ends))
    changed = torch.where(_steps_between(tensor, axes).abs() <= 1, within, beyond)
    return torch.where(tensor == 0, tensor, changed) if has_structural_zeros(tensor) else changed


def _ends_of(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return the range of whole numbers, None where differences within it are beyond int64."""
    ends = range_without_sentinels(tensor)
    return ends if ends and ends[1] - ends[0] <= torch.iinfo(torch.int64).max else None


def _brought_near(tensor: torch.Tensor, end: int, size: int) -> torch.Tensor:
    """Return whole numbers with their distances from one of them divided by `size`."""
    return with_sentinels_of(
        tensor, (end + torch.div(tensor.long() - end, size, rounding_mode="trunc")).to(tensor.dtype)
    )


def _is_of_one_sign(tensor: torch.Tensor, mean: float) -> bool:
    return bool(mean) and not bool((tensor * math.copysign(1.0, mean) < 0).any())


def _diagonal(tensor: torch.Tensor, axes: Axes, shift: int) -> torch.Tensor:
    """Return which places of a tensor lie on the diagonals between two of its dimensions, as many places on as `shift` says."""
    least = min(tensor.shape[axis] for axis in axes)
    return (_steps_between(tensor, axes) + shift) % least == 0


def _steps_between(tensor: torch.Tensor, axes: Axes) -> torch.Tensor:
    """Return the row less the column of each place of a tensor, both within the square matrix in which it lies."""
    least = min(tensor.shape[axis] for axis in axes)
    from_row, to_column = (
        torch.arange(tensor.shape[axis], device=tensor.device).reshape(
            [-1 if d == axis else 1 for d in range(tensor.dim())]
        )
        % least
        for axis in axes
    )
    return (from_row - to_column).expand(tensor.shape)
