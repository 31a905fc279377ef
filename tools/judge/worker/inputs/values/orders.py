"""Rows in order: offsets, segments, positions, edges. Other values keep the order, and mostly the ends of each row."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from ridgeline.tools.judge.worker.inputs.values.permutations import uniform
from ridgeline.tools.judge.worker.inputs.values.structure import LEAST_ORDERED, is_within, range_within_padding
from ridgeline.tools.judge.worker.inputs.values.transforms import few_or_many, random_index

_Way = Callable[[torch.Tensor, torch.Generator], torch.Tensor]

_HEAPED = 0.25  # of the rows in order: with a heap of one value
_NARROW = 0.25  # of them: with all values but the ends within a part of the range
_PARTS = 16  # rows in order are changed in this part of one, where little may change
_MOST_HEAPED = 15 / 16  # of a row's places


def ways_in_order(tensor: torch.Tensor, order: int) -> tuple[_Way, ...]:
    """Return the ways to change rows in order, the likeliest first; none where no other value fits anywhere."""
    way = (functools.partial(moved, order=order),) if has_room(tensor, order) else ()
    return way if tensor.is_floating_point() else (*_redrawn_ways(tensor, order), *way)


def _redrawn_ways(tensor: torch.Tensor, order: int) -> tuple[_Way, ...]:
    """Return the ways to draw whole numbers in order anew: with repeats where they have some, without where they have none.

    Those that begin at 0 may be the ends of bags: with repeats first. Others without any may be places to write to, and a
    place that is written twice has no certain value. What rows are padded with is no repeat.
    """
    if not has_room(tensor, order):
        return ()
    rising = tensor if order > 0 else tensor.flip(-1)
    has_repeats = bool(((rising.diff(dim=-1) == 0) & _are_pairs(rising)).any())
    first, count = _own_runs(rising)
    begins_at_zero = bool(((rising.gather(-1, first) == 0) | (count == 0)).all())
    kinds = (True,) if has_repeats else (True, False) if begins_at_zero else (False,)
    return tuple(functools.partial(redrawn, order=order, has_repeats=each) for each in kinds)


def ways_of_drawn_order(tensor: torch.Tensor, order: int, is_written: Callable[[], bool]) -> tuple[_Way, ...]:
    """Return the ways to draw whole numbers anew that come in order in every draw.

    Where no other number fits into a row without repeats, as into 7, 8, 9, …, some are repeated first. Where the reference
    writes to places by index they are not: a place that is written twice has no certain value.
    """
    ways = _redrawn_ways(tensor, order)
    if not has_full_row(tensor, order) or is_written():
        return ways
    repeating = tuple(functools.partial(_redrawn_and_repeated, way=way, order=order) for way in ways)
    return (*repeating, *ways) if ways else (functools.partial(repeated, order=order),)


def _gaps(tensor: torch.Tensor, order: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows rising, and how far every element but the first and the last of its own may go down in its order.

    Nothing moves towards what rows are padded with, nor does that.
    """
    rising = tensor if order > 0 else tensor.flip(-1)
    gaps = rising.diff(dim=-1)
    if tensor.is_floating_point():
        return rising, gaps[..., :-1]
    are_pairs = _are_pairs(rising)
    if bool(((gaps > 0) | ~are_pairs).all()):
        gaps = gaps - 1  # no value twice
    return rising, gaps[..., :-1] * (are_pairs[..., :-1] & are_pairs[..., 1:])


def _own_runs(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first place of each row's own numbers, and how many there are: all but what rows are padded with."""
    ends = range_within_padding(rows)
    is_own = (torch.ones_like(rows, dtype=torch.bool) if ends is None else is_within(rows, ends)).long()
    return is_own.argmax(-1, keepdim=True), is_own.sum(-1, keepdim=True)


def _are_pairs(rising: torch.Tensor) -> torch.Tensor:
    """Return at which places but the last a number and the next one are both a row's own."""
    first, count = _own_runs(rising)
    places = torch.arange(rising.shape[-1] - 1, device=rising.device)
    return (places >= first) & (places < first + count - 1)


def has_room(tensor: torch.Tensor, order: int) -> bool:
    """Return whether another value fits anywhere; 0, 1, 2, … are dense."""
    return bool((_gaps(tensor, order)[1] > 0).any())


def has_full_row(tensor: torch.Tensor, order: int) -> bool:
    """Return whether no other number without repeats fits into some row."""
    rising, gaps = _gaps(tensor, order)
    are_pairs = _are_pairs(rising)
    is_full = (gaps <= 0).all(-1) & ((rising.diff(dim=-1) > 0) | ~are_pairs).all(-1) & (are_pairs.sum(-1) > 1)
    return bool(is_full.any())


def moved(tensor: torch.Tensor, generator: torch.Generator, *, order: int) -> torch.Tensor:
    """Return every element but the ends moved towards its neighbour, so that the order stays."""
    rising, gaps = _gaps(tensor, order)
    steps = uniform(gaps.shape, generator).to(torch.float64 if not tensor.is_floating_point() else tensor.dtype)
    changed = rising.clone()
    if tensor.is_floating_point():
        changed[..., 1:-1] = torch.maximum(rising[..., 1:-1] - steps * gaps, rising[..., :-2])
    else:
        changed[..., 1:-1] -= (steps * (gaps + 1)).long().clamp_max(gaps).to(tensor.dtype)
    return changed if order > 0 else changed.flip(-1)


def redrawn(tensor: torch.Tensor, generator: torch.Generator, *, order: int, has_repeats: bool) -> torch.Tensor:
    """Return whole numbers in order of which all but each row's ends, and what it is padded with, are drawn anew between these.

    Drawn evenly they leave gaps of every usual size. A heap of one value, or values in a part of the range alone, leave
    gaps of nothing and of most of the range: empty bags, and long ones. Without repeats a heap is a run of neighbours.
    """
    rising = (tensor if order > 0 else tensor.flip(-1)).long()
    first, count = _own_runs(rising)
    low, high = (rising.gather(-1, place.clamp_min(0)) for place in (first, first + count - 1))
    inner = torch.arange(1, rising.shape[-1] - 1, device=rising.device)
    steps = 0 if has_repeats else inner
    most = 1 << 62  # with one more 64 bits hold it still
    room = (high - low if has_repeats else high - low - count + 1).clamp(0, most)
    rows = (*rising.shape[:-1], 1)
    kind, begin, end, heap, share = (uniform(rows, generator).double() for _ in range(5))
    within = (kind < _NARROW).double()
    start, width = within * torch.minimum(begin, end), 1 - within * (1 - (end - begin).abs())
    drawn = torch.rand((*rows[:-1], len(inner)), generator=generator, device=generator.device, dtype=torch.float64)
    is_heaped = uniform(drawn.shape, generator) < _MOST_HEAPED * share * (kind >= 1 - _HEAPED)
    places = torch.where(inner < count - 1, torch.where(is_heaped, heap, start + width * drawn), 1.0)
    offsets = (places * (room + 1)).long().clamp_max(room).sort(dim=-1).values
    run = torch.cat((low, low + offsets + steps, high), dim=-1)
    place = torch.arange(rising.shape[-1], device=rising.device) - first
    is_inner = (place > 0) & (place < count - 1)
    changed = torch.where(is_inner, run.gather(-1, place.clamp_min(0)), rising).to(tensor.dtype)
    return changed if order > 0 else changed.flip(-1)


def repeated(tensor: torch.Tensor, generator: torch.Generator, *, order: int) -> torch.Tensor:
    """Return rows in order a few or many of whose numbers, but for the ends, are the next lower one once more.

    What rows are padded with stays.
    """
    rising = tensor if order > 0 else tensor.flip(-1)
    rows, are_pairs = (each.reshape(-1, each.shape[-1]) for each in (rising, _are_pairs(rising)))
    is_repeat = few_or_many(rows[:, 1:-1].shape, generator)
    may_repeat = are_pairs[:, :-1] & are_pairs[:, 1:]
    places = may_repeat.nonzero()
    if len(places):
        is_repeat[tuple(places[random_index((len(places),), generator)])] = True
    changed = rows.clone()
    changed[:, 1:-1] = torch.where(is_repeat & may_repeat, rows[:, :-2], rows[:, 1:-1])
    changed = changed.view(tensor.shape)
    return changed if order > 0 else changed.flip(-1)


def _redrawn_and_repeated(tensor: torch.Tensor, generator: torch.Generator, *, way: _Way, order: int) -> torch.Tensor:
    return repeated(way(tensor, generator), generator, order=order)


def with_part_changed(
    tensor: torch.Tensor, _other: torch.Tensor, generator: torch.Generator, *, way: _Way
) -> torch.Tensor:
    """Return rows in order with a part of a secret one changed in a way that keeps its ends, and so the order.

    That part is none of what rows are padded with.
    """
    changed = tensor.clone().reshape(-1, tensor.shape[-1])
    first, count = (each.flatten() for each in _own_runs(changed))
    wide = (count >= LEAST_ORDERED).nonzero().flatten()
    if not wide.numel():
        return tensor
    chosen = int(wide[torch.randint(wide.numel(), (), generator=generator, device=generator.device)])
    row = changed[chosen].narrow(0, int(first[chosen]), int(count[chosen]))
    length = min(row.numel(), -(-row.numel() // _PARTS) + 2)
    start = int(torch.randint(row.numel() - length + 1, (), generator=generator, device=generator.device))
    row[start : start + length] = way(row[start : start + length], generator)
    return changed.view(tensor.shape)
