"""Whole numbers near their place's share of their range: links between neighbours alone, as of a ring.

Drawn ones link every place with any other, so that what spreads over them has spread after a few rounds. Both ends of a link
come near its place, and so near each other, whether they lie in two rows, in two columns or in two inputs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.values.structure import range_without_sentinels

REACH = 64
"""Of a range: how far a number lies from its place's share, and so the fewest places along which any share is less."""
_LARGEST = 2
"""Times the places along a dimension: numbers of a wider range name no places, or more places than links reach."""

Ends = tuple[int, int]
"""The smallest and the largest of an input's whole numbers."""


def ranges_of(tensors: Mapping[int, torch.Tensor]) -> dict[int, Ends]:
    """Return the ends of each tensor of whole numbers that has a dimension: see `range_without_sentinels`."""
    return {i: ends for i, t in tensors.items() if (ends := range_without_sentinels(t)) and t.dim()}


def links_of(first: Tensors, ranges: Mapping[int, Ends]) -> dict[int, Ends]:
    """Return those of the inputs with a range that may be links between places.

    One of a single dimension needs another of its length and type: the links' other ends.
    """
    long = {i: ends for i, ends in ranges.items() if axis_of(first[i].shape, ends) is not None}
    forms = Counter((first[i].dtype, first[i].shape) for i in long)
    return {i: e for i, e in long.items() if first[i].dim() > 1 or forms[first[i].dtype, first[i].shape] > 1}


def axis_of(shape: torch.Size, ends: Ends) -> int | None:
    """Return which of the last two dimensions numbers follow: of long ones the nearer in size to their range, or neither."""
    low, high = ends
    span = high - low + 1
    axes = [axis for axis in range(-min(2, len(shape)), 0) if shape[axis] >= REACH and span <= _LARGEST * shape[axis]]
    return min(axes, key=lambda axis: abs(math.log2(shape[axis] / span)), default=None)


def near_their_places(tensor: torch.Tensor, generator: torch.Generator, *, ends: Ends) -> torch.Tensor:
    """Return whole numbers within their range that lie near their place's share of it, along the dimension of `axis_of`."""
    axis = axis_of(tensor.shape, ends)
    if axis is None:
        return tensor
    low, high = ends
    count, span = tensor.shape[axis], high - low + 1
    reach = max(1, span // REACH)
    drawn = torch.randint(-reach, reach + 1, tensor.shape, generator=generator, device=generator.device)
    places = torch.arange(count, device=tensor.device).view(-1, *(1 for _ in range(-1 - axis)))
    return (low + (places * span // count + drawn) % span).to(tensor.dtype)
