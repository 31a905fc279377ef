"""Whole numbers that are chains: each names the place before its own, or the one after it, as parents in a deep tree do.

Drawn parents, and those near their places, lead to a root within a few links, so that rounds which follow them end early.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.arrangements.links import REACH, Ends, axis_of, near_their_places

_OWN = 7 / 8
"""Of the places along a dimension: numbers of a narrower range, on both sides of their places, may name other places."""
_LONGEST = 8192
"""Links of a chain, at most: a plain walk along it rounds at each of them."""
_FEWEST_FOR_BOTH_WAYS = 4
"""Rows, where half are chains: of fewer each chain leads down at first and then up, of as many each one way alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The dimension that a tensor's chains follow, the ends of their range, and which ways they may lead."""

    axis: int
    ends: Ends
    leads_down: bool
    leads_up: bool


def chain_of(tensor: torch.Tensor, ends: Ends) -> Chain | None:
    """Return how whole numbers that name places along a dimension of their own are chains; None of all others.

    Where none lies beyond its own place chains lead down alone, where none lies before it up.
    """
    axis = axis_of(tensor.shape, ends)
    if axis is None:
        return None
    (low, high), count = ends, tensor.shape[axis]
    places = torch.arange(count, device=tensor.device).view(-1, *(1 for _ in range(-1 - axis)))
    precede, follow = bool((tensor <= places).all()), bool((tensor >= places).all())
    least = REACH if precede != follow else _OWN * count
    is_own = low >= -1 and high <= count and high - low + 1 >= least
    return (
        Chain(axis=axis, ends=ends, leads_down=precede or not follow, leads_up=follow or not precede)
        if is_own
        else None
    )


def chains_of(first: Tensors, ranges: Mapping[int, Ends]) -> dict[int, Chain]:
    """Return how those of the inputs with a range are chains that may be."""
    return {i: chain for i, ends in ranges.items() if (chain := chain_of(first[i], ends)) is not None}


def with_links(
    inputs: Tensors, generator: torch.Generator, *, near: Mapping[int, Ends], chains: Mapping[int, Chain]
) -> Tensors:
    """Return inputs of which some lie near their places, and some are chains: of two of one form in rows of their own each."""
    changed = [near_their_places(t, generator, ends=near[i]) if i in near else t for i, t in enumerate(inputs)]
    groups = defaultdict[tuple[torch.dtype, torch.Size], list[int]](list)
    for i in sorted(chains):
        groups[inputs[i].dtype, inputs[i].shape].append(i)
    for members in groups.values():
        start = int(torch.randint(4 * len(members), (), generator=generator, device=generator.device))
        for turn, i in enumerate(members, start):
            changed[i] = chained(changed[i], generator, chain=chains[i], turn=turn, n_members=len(members))
    return tuple(changed)


def chained(
    tensor: torch.Tensor, generator: torch.Generator, *, chain: Chain, turn: int | None = None, n_members: int = 1
) -> torch.Tensor:
    """Return whole numbers every second row of which is a chain: which ones, the turn says, None for a secret one.

    A single row is a chain in one of so many turns as its form has members.
    """
    (low, high), axis = chain.ends, chain.axis
    rows = tensor.movedim(axis, -1)
    n_rows, count = rows.numel() // rows.shape[-1], rows.shape[-1]
    drawn = torch.rand(2, generator=generator, device=generator.device, dtype=torch.float64).tolist()
    first = int(4 * drawn[0]) if turn is None else turn
    turns = torch.arange(n_rows, device=tensor.device).view(*rows.shape[:-1], 1)
    turns += first if n_rows > 1 else int(first % n_members != 0)
    places = torch.arange(count, device=tensor.device)
    down = torch.where(places % _LONGEST == 0, low, places - 1)
    up = torch.where(places % _LONGEST == _LONGEST - 1, high, places + 1)
    is_down = turns % 4 < 2 if n_rows >= _FEWEST_FOR_BOTH_WAYS else places < count * drawn[1]
    if not (chain.leads_down and chain.leads_up):
        is_down = torch.full_like(places, chain.leads_down, dtype=torch.bool)
    links = torch.where(is_down, down, up).clamp(low, high).to(tensor.dtype)
    return torch.where(turns % 2 == 0, links, rows).movedim(-1, axis).contiguous()
