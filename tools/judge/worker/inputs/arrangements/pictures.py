"""The pictures that an input holds: its last two long dimensions, one for each place of all others."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ridgeline.tools.judge.worker.call_form import Tensors

LEAST_PLACES = 8
"""Places of a dimension that a picture has."""

Arrangement = Callable[[Tensors, torch.Generator], Tensors]
"""Returns inputs some of which are arranged otherwise."""


def picture_axes(shape: torch.Size) -> tuple[int, ...]:
    """Return the dimensions of an input's pictures: of those with places enough the last two, the only one, or none."""
    return tuple(axis for axis, size in enumerate(shape) if size >= LEAST_PLACES)[-2:]


def shape_of_pictures(shape: torch.Size) -> tuple[int, int, int]:
    """Return how many pictures an input has, and their rows and columns: one row, where one dimension alone is long."""
    sizes = [shape[axis] for axis in picture_axes(shape)]
    height, width = sizes if len(sizes) == 2 else (1, *sizes)
    return shape.numel() // (height * width), height, width


def in_place_of(pictures: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Return pictures as an input of a shape holds them."""
    axes = picture_axes(shape)
    others = [size for axis, size in enumerate(shape) if axis not in axes]
    ordered = pictures.reshape(*others, *(shape[axis] for axis in axes))
    return ordered.movedim(tuple(range(-len(axes), 0)), axes).contiguous()


def pictures_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return an input's pictures, (pictures, rows, columns)."""
    axes = picture_axes(tensor.shape)
    return tensor.movedim(axes, tuple(range(-len(axes), 0))).reshape(shape_of_pictures(tensor.shape))
