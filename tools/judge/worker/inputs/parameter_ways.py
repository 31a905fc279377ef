"""The ways in which a parameter or buffer may vary, the widest first, and what each changes where little is to change.

Random values around the default ones come first. What refuses those may need structure or a bound: a covariance has to be
definite, a factor triangular, a rate near its default. Running the reference shows which way it takes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.arrangements.chains import chain_of, chained
from ridgeline.tools.judge.worker.inputs.values.orders import has_room, moved
from ridgeline.tools.judge.worker.inputs.values.permutations import mixed_up, with_two_exchanged
from ridgeline.tools.judge.worker.inputs.values.structure import (
    are_distinct,
    are_permuted_rows,
    in_order,
    is_binary,
    mirrored,
    order_of,
    range_without_sentinels,
    with_sentinels_of,
)
from ridgeline.tools.judge.worker.inputs.values.transforms import random_index, scaled_at, with_one_slice
from ridgeline.tools.judge.worker.inputs.variation import (
    FACTORS,
    Way,
    factors_of,
    mixed_rows,
    scaled,
    scaled_on_both_sides,
    uniform_ways,
    ways_below,
    ways_to_vary,
)

Change = Callable[[torch.Tensor, torch.Tensor, torch.Generator], torch.Tensor]
"""Returns a tensor with little of another draw in it, or otherwise changed as little."""

_RANK = (
    32  # of what is added to a definite matrix: a product of such matrices takes no time beside the reference's work
)
_ADDED = 0.5  # ... whose diagonal is this share of the mean diagonal element
_ROUNDING = 64  # last bits by which the halves of a symmetric matrix may differ
_OFTEN_CROWDED = 1 / 2  # of the draws of whole numbers
_CROWDED = 15 / 16  # of the places of such a draw
_CHAINS = 1 / 4  # of the draws of whole numbers that name places along their own dimension
_LEAST_OF_WHOLE = 3  # different numbers of what lists whole ones as floating-point values
_MOVED = 3.0  # times the rms, by which one element is moved


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterWay:
    """One way to vary a tensor: its draws, and the changes of one row and of one element that it allows."""

    draw: Way
    with_slice: Change
    with_element: Change
    is_free: bool = False  # values of any size around the tensor's own, not within a bound
    seldom: Way | None = None  # draws that have what only some of `draw` have


def ways_at_first(tensor: torch.Tensor, *, is_buffer: bool, stays_in_order: bool) -> tuple[ParameterWay, ...]:
    """Return the ways that are known without looking at floating values closely: random ones; those of whole numbers.

    What is made in order and not trained stays so: edges and levels are sought by bisection, which means nothing without an
    order. Training keeps none.
    """
    if tensor.is_floating_point():
        if not _may_be_random(tensor, is_buffer=is_buffer):
            return ()
        order = order_of(tensor) if stays_in_order else 0
        return (_in_order(order), *ways_after_random(tensor)) if order else (RANDOM,)
    return _ways_of_whole(tensor) if _is_whole(tensor) else ()


def ways_after_random(tensor: torch.Tensor) -> tuple[ParameterWay, ...]:
    """Return the ways for floating values of which random ones are refused: structure that stays, then bounds."""
    if not bool((tensor != 0).any()):
        return tuple(map(_by_element, uniform_ways()))
    if _is_nearly_symmetric(tensor):
        both = tuple(functools.partial(scaled_on_both_sides, factors=factors) for factors in FACTORS)
        return (
            ParameterWay(draw=_still_definite, with_slice=_with_one_lessened, with_element=_with_one_lessened),
            _wholly(_mixed_on_both_sides),
            *(ParameterWay(draw=way, with_slice=_with_one_scaled, with_element=_with_one_scaled) for way in both),
            _wholly(_mixed_up_on_both_sides),
        )
    order = order_of(tensor)
    between = (functools.partial(moved, order=order),) if order and has_room(tensor, order) else ()
    scalings = tuple(functools.partial(scaled, factors=factors) for factors in FACTORS)
    single = tensor.dim() == 0
    return (
        *map(_by_element, (*between, *scalings)),
        *(() if single else (_by_element(mixed_rows), _wholly(mixed_up))),
    )


def lists_whole_numbers(tensor: torch.Tensor) -> bool:
    """Return whether floating-point values are whole numbers, to which others may be compared: codes, places, labels."""
    if not tensor.is_floating_point() or _is_nearly_symmetric(tensor) or not bool((tensor == tensor.round()).all()):
        return False
    return bool(torch.unique(tensor).numel() >= _LEAST_OF_WHOLE)


def has_fragile_structure(tensor: torch.Tensor) -> bool:
    """Return whether random values break what a reference may need: some draws of a matrix are definite by chance."""
    return tensor.is_floating_point() and (_is_nearly_symmetric(tensor) or order_of(tensor) != 0)


def _is_nearly_symmetric(tensor: torch.Tensor) -> bool:
    """Return whether a matrix is symmetric but for rounding: one of distances is made of sums in other orders."""
    if tensor.dim() < 2 or not tensor.shape[-1] == tensor.shape[-2] > 1:
        return False
    limit = _ROUNDING * torch.finfo(tensor.dtype).eps * float(tensor.abs().max())
    return bool(((tensor - tensor.mT).abs() <= limit).all())


# ------------------------------------------------------------------------------------------------------------- first ways


def _is_whole(tensor: torch.Tensor) -> bool:
    return not tensor.is_complex() and not is_binary(tensor) and tensor.dtype != torch.bool


def _may_be_random(tensor: torch.Tensor, *, is_buffer: bool) -> bool:
    """Return whether a tensor may take random values: not a mask of zeros and ones, nor one of infinities."""
    return is_finite(tensor) and not (is_buffer and is_binary(tensor))


def _ways_of_whole(tensor: torch.Tensor) -> tuple[ParameterWay, ...]:
    """Return the ways in which whole numbers may vary; a single one stays above 0, which may leave nothing to compute."""
    order = order_of(tensor)
    ways = ways_to_vary(tensor, order) if tensor.numel() > 1 else ways_below(int(tensor), least=1)
    if order:
        return tuple(map(_wholly, ways))  # a part of another draw would break the order
    is_permuted = are_distinct(tensor) or are_permuted_rows(tensor)
    if ways and tensor.numel() > 1 and not is_permuted:
        ways = (functools.partial(_often_crowded, way=ways[0]), *ways)
    change = with_two_exchanged if is_permuted else with_one_slice
    found = tuple(ParameterWay(draw=way, with_slice=change, with_element=change) for way in ways)
    ends = None if is_permuted else range_without_sentinels(tensor)
    chain = chain_of(tensor, ends) if found and ends is not None else None
    return found if chain is None else (_at_times_a_chain(found[0], functools.partial(chained, chain=chain)), *found)


def _at_times_a_chain(way: ParameterWay, seldom: Way) -> ParameterWay:
    """Return a way some of whose draws are chains, as far as they may be: parents of deep trees."""

    def draw(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        is_chain = torch.rand((), generator=generator, device=generator.device) < _CHAINS
        return torch.where(is_chain, seldom(tensor, generator), way.draw(tensor, generator))

    return replace(way, draw=draw, seldom=seldom)


def _often_crowded(tensor: torch.Tensor, generator: torch.Generator, *, way: Way) -> torch.Tensor:
    """Return another draw, in some of which nearly all numbers are the lowest: groups and bins that hold most places.

    Sentinels stay.
    """
    changed = way(tensor, generator)
    is_lowest = torch.rand(tensor.shape, generator=generator, device=generator.device) < _CROWDED
    is_crowded = torch.rand((), generator=generator, device=generator.device) < _OFTEN_CROWDED
    low, _ = range_without_sentinels(tensor) or (0, 0)
    lowest = torch.full_like(tensor, low)
    return with_sentinels_of(tensor, torch.where(is_lowest & is_crowded, lowest, changed))


def _randomized(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if bool((tensor > 0).all()):
        factors = 0.5 + torch.rand(tensor.shape, generator=generator, device=generator.device)
        return tensor * factors.to(tensor.dtype)  # a variance stays one
    spread = float(tensor.double().std()) if tensor.numel() > 1 else 0.0
    noise = torch.randn(tensor.shape, generator=generator, device=generator.device) * (spread or 0.2)
    return tensor + noise.to(tensor.dtype)


def _still_definite(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return D (M + G G^T) D: as definite as the tensor, of which M is a mixture with a permutation of itself."""
    size, diagonal = tensor.shape[-1], tensor.diagonal(dim1=-2, dim2=-1)
    rank = min(size, _RANK)
    drawn = torch.randn((size, rank), generator=generator, device=generator.device) / math.sqrt(rank)
    size_of_added = _ADDED * float(diagonal.double().mean())  # negative, where the tensor is negative definite
    added = mirrored(drawn @ drawn.mT) * size_of_added
    mixed = _mixed_on_both_sides(tensor, generator) + added.to(tensor.dtype)
    return scaled_on_both_sides(mixed, generator, factors=FACTORS[0])


def _mixed_on_both_sides(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a mixture of a symmetric matrix with a permutation of its rows and columns: no less definite.

    It is mirrored, since sums of products round by their place.
    """
    weight = float(torch.rand((), generator=generator, device=generator.device))
    return mirrored(torch.lerp(tensor, _mixed_up_on_both_sides(tensor, generator), weight))


def _mixed_up_on_both_sides(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    places = torch.randperm(tensor.shape[-1], generator=generator, device=generator.device)
    return tensor[..., places, :][..., places]


# ------------------------------------------------------------------------------------------------- changes of one place


def _with_one_moved(tensor: torch.Tensor, _other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor with one element moved by three times its rms, to the other side of zero where there are such numbers.

    So it is hardly ever larger than the others: a gate that forgets next to nothing is more than float32 holds. One of
    positive numbers is halved instead.
    """
    changed, place = tensor.clone(), random_index(tensor.shape, generator)
    if bool((tensor > 0).all()):
        changed[place] *= 0.5
        return changed
    step = _MOVED * float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) / math.sqrt(tensor.numel())
    is_down = bool((tensor < 0).any()) and bool(changed[place] > 0)
    changed[place] += -step if is_down else step
    return changed


def _with_one_element(tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor with one element of `other` where the two differ: zeros that are structure do not."""
    places = (tensor != other).flatten().nonzero().flatten()
    if not places.numel():
        return other
    changed = tensor.clone()
    place = places[random_index(places.shape, generator)]
    changed.view(-1)[place] = other.reshape(-1)[place]
    return changed


def _with_one_lessened(tensor: torch.Tensor, _other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a symmetric matrix with one row and its column scaled: as definite as it was."""
    factor = float(factors_of((1,), generator, FACTORS[0]))
    return scaled_at(tensor, random_index(tensor.shape[:-1], generator), factor)


def _with_one_scaled(tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return D A D with one element of D as `other` has it, which the two diagonals tell: within the bounds of both."""
    index = random_index(tensor.shape[:-1], generator)
    place = (*index, index[-1])
    own, others = float(tensor[place]), float(other[place])
    return scaled_at(tensor, index, math.sqrt(others / own)) if own * others > 0 else other


def _other(_tensor: torch.Tensor, other: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    return other


def _by_element(way: Way) -> ParameterWay:
    """Return a way whose rows and elements may come from another draw."""
    return ParameterWay(draw=way, with_slice=with_one_slice, with_element=_with_one_element)


def _wholly(way: Way) -> ParameterWay:
    """Return a way of which a part of another draw would be no draw."""
    return ParameterWay(draw=way, with_slice=_other, with_element=_other)


def _randomized_in_order(tensor: torch.Tensor, generator: torch.Generator, *, order: int) -> torch.Tensor:
    return in_order(_randomized(tensor, generator), order)


def _with_one_between(tensor: torch.Tensor, _other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor in order with one element anywhere between its neighbours, an end between its neighbour and itself."""
    changed, place = tensor.clone(), random_index(tensor.shape, generator)
    row = tensor[place[:-1]]
    before, after = row[max(0, place[-1] - 1)], row[min(len(row) - 1, place[-1] + 1)]
    changed[place] = torch.lerp(
        before, after, torch.rand((), generator=generator, device=generator.device).to(row.dtype)
    )
    return changed


def _in_order(order: int) -> ParameterWay:
    draw = functools.partial(_randomized_in_order, order=order)
    return ParameterWay(draw=draw, with_slice=_with_one_between, with_element=_with_one_between, is_free=True)


RANDOM = ParameterWay(draw=_randomized, with_slice=with_one_slice, with_element=_with_one_moved, is_free=True)
"""Random values around a tensor's own; positive ones stay positive."""
