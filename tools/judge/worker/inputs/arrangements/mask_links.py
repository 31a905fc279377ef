"""Masks with links between near places alone: those of a graph, directed or not, and those between rows and other columns.

Links at random join every place with any other within a few, so that what spreads over them has spread after as many rounds.
Links are only taken away, and none is a row's or a column's last: rows that were not empty have a link left.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.variation import Way

_NEAR = 16  # part of a ring within which links stay, at most


def near_links(mask: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a mask with the links between places near each other on a ring alone, and each row's and column's nearest.

    Rows and columns have each their share of the ring. What is symmetric stays so.
    """
    size = mask.shape[-1]
    reach = 1 + int(torch.randint(max(1, size // _NEAR), (), generator=generator, device=generator.device))
    apart = _steps_apart(mask)
    return _with_nearest(mask, apart, apart <= reach)


def links_in_groups(mask: torch.Tensor, ends: Sequence[float]) -> torch.Tensor:
    """Return a mask with the links within groups of rows and columns alone, and each row's and column's nearest.

    The `ends` are those of the groups, as parts of the rows, and of the columns.
    """
    count, width = mask.shape[-2:]
    is_kept = torch.zeros(count, width, dtype=torch.bool, device=mask.device)
    for begin, end in pairwise(ends):
        is_kept[round(begin * count) : round(end * count), round(begin * width) : round(end * width)] = True
    return _with_nearest(mask, _steps_apart(mask), is_kept)


def changed_at(inputs: Tensors, places: Container[int], way: Way, generator: torch.Generator) -> Tensors:
    """Return the inputs, those at the given places changed in a way."""
    return tuple(way(t, generator) if i in places else t for i, t in enumerate(inputs))


def _steps_apart(mask: torch.Tensor) -> torch.Tensor:
    """Return how many columns each column lies from a row's share of the ring."""
    count, size = mask.shape[-2:]
    rows, columns = (torch.arange(length, device=mask.device) for length in (count, size))
    # of 32 bits: half the room, in timed sets too
    apart = ((rows * size // count).int().unsqueeze(-1) - columns.int()).abs()
    return torch.minimum(apart, size - apart)


def _with_nearest(mask: torch.Tensor, apart: torch.Tensor, is_kept: torch.Tensor) -> torch.Tensor:
    distances = torch.where(mask != 0, apart, mask.shape[-1])
    for axis in (-1, -2):
        nearest = torch.zeros_like(mask, dtype=torch.bool)
        is_kept = is_kept | nearest.scatter_(axis, distances.argmin(axis, keepdim=True), value=True)
    return torch.where(is_kept, mask, torch.zeros_like(mask))
