"""Inputs, or rows of one, that are nearly copies of others, moved along a dimension: what fits together lies off the diagonal.

Draws are independent of each other, so that nothing fits better far from the diagonal than near it. Users align, compare
and match what is a shifted copy of something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.values.structure import (
    is_symmetric,
    is_within,
    is_without_structure,
    may_be_compared,
    range_of_whole,
    range_without_sentinels,
)

_MOVED = (1 / 4, 1 / 2)
"""Of a dimension's places: how far a copy is moved, in either direction, mostly by little more than the least."""
_OWN_WEIGHT = 1 / 8
"""Of each floating-point number, what stays of the input's own."""
_OWN_PLACES = 1 / 16
"""Share of the places at which whole numbers stay the input's own."""
_HELD = 1 / 2
"""Share of the rows, or matrices, in which each number is held for a run of places."""
_RUNS = (1 / 16, 1 / 4)
"""Of a dimension's places: the length of such a run."""
_LEAST_PLACES = 8
"""Places of a dimension along which anything is moved."""
_ALIKE = 1 / 4
"""Of the wider range: by how much the ends of two inputs' ranges may differ."""

_Part = tuple[torch.Tensor, int]
"""Places along the first dimension, and the dimension along which each of them moves; the first: all of them as one."""


def first_of_each_copy(inputs: Tensors, forms: Sequence[InputForm], free: Collection[int]) -> dict[int, int]:
    """Return the inputs that may be copies of an earlier one of their type, shape and range, each with the first such one.

    Inputs with structure are none: masks, rows in order, permutations, symmetric ones, those with many zeros or infinities.
    """
    firsts: dict[int, int] = {}
    seen: list[int] = []
    for i, (tensor, form) in enumerate(zip(inputs, forms, strict=True)):
        if i not in free or form.is_alike or not _may_be_moved(tensor, form):
            continue
        first = next((other for other in seen if _are_of_one_form(inputs[other], tensor)), None)
        if first is None:
            seen.append(i)
        else:
            firsts[i] = first
    return firsts


def may_copy_rows(inputs: Tensors, forms: Sequence[InputForm], free: Collection[int]) -> tuple[int, ...]:
    """Return the inputs of which some rows, slices of the first dimension, may be copies of others, moved along another one.

    Structure is none, as for copies of an input.
    """
    return tuple(
        i
        for i, (tensor, form) in enumerate(zip(inputs, forms, strict=True))
        if i in free and not form.is_alike and tensor.dim() and len(tensor) > 1 and _others(tensor.shape)
        if _may_be_moved(tensor, form)
    )


def with_copies(inputs: Tensors, generator: torch.Generator, *, firsts: Mapping[int, int]) -> Tensors:
    """Return inputs of which each of `firsts` is nearly a copy of its first one, moved; these may hold numbers for a while.

    Of one that is its own first, half of the rows are copies of the others.

    Each row, or matrix, of a copy moves by a number of places of its own. Half of the first dimension's places move along
    that one, where there are as many as two others need; a dimension of the rest is secret for each place.
    """
    changed = list(inputs)
    for first in dict.fromkeys(firsts.values()):
        copies = [i for i, of in firsts.items() if of == first]
        if copies == [first]:
            changed[first] = _with_copied_rows(inputs[first], generator)
            continue
        of_group = [first, *copies]
        shape = _without_leading_ones(inputs[first].shape)
        for i in of_group:
            changed[i] = inputs[i].reshape(shape).clone()
        for places, dim in _parts(shape, generator):
            _move(changed, of_group, places, dim, generator)
        for i in of_group:
            changed[i] = _with_none_between(changed[i].view(inputs[i].shape), inputs[i])
    return tuple(changed)


def _with_copied_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return an input with as many pairs of rows as there are, of which one is nearly a moved copy of the other."""
    order, half = torch.randperm(len(tensor), generator=generator, device=generator.device), len(tensor) // 2
    pairs = (order[:half], order[half : 2 * half])
    rows = [tensor[places] for places in pairs]
    for places, dim in _dealt(torch.arange(half, device=tensor.device), _others(tensor.shape), generator):
        _move(rows, (0, 1), places, dim, generator)
    changed = tensor.clone()
    for places, each in zip(pairs, rows, strict=True):
        changed[places] = each
    return changed


def _move(
    tensors: list[torch.Tensor], of_group: Sequence[int], places: torch.Tensor, dim: int, generator: torch.Generator
) -> None:
    """Hold numbers of the first of a group along a dimension, and write it into the others, moved."""
    own = [_lines(tensors[i][places], dim) for i in of_group]
    held = _nearly(_at(own[0], _held_places(own[0].shape, generator)), own[0], generator)
    moved = [_nearly(_at(held, _moved_places(held.shape, generator)), each, generator) for each in own[1:]]
    for i, lines in zip(of_group, (held, *moved), strict=True):
        tensors[i][places] = lines.movedim(1, max(dim, 1)).reshape(tensors[i][places].shape)


def _lines(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """Return a tensor whose second dimension is the one to move along; of the first one, all as one."""
    return tensor.movedim(dim, 1) if dim else tensor.unsqueeze(0)


def _at(lines: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return the numbers at given places of each line."""
    wide = places.view(*places.shape, *(1 for _ in lines.shape[2:]))
    return torch.gather(lines, 1, wide.expand(lines.shape))


def _held_places(shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    """Return for each place the one whose number it holds: its own in half of the lines, in others a run's first."""
    is_held, length, phase = _random(3, shape[0], generator)
    least, most = _RUNS
    run = (shape[1] * least * (most / least) ** length).round().clamp(min=2)
    run = torch.where(is_held < _HELD, run, 1.0).long()
    offset = (phase * run).long()
    places = torch.arange(shape[1], device=generator.device)
    begin: torch.Tensor = torch.div(places + offset, run, rounding_mode="floor") * run - offset
    return begin.clamp(min=0)


def _moved_places(shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    """Return for each place of a line the one from which its number comes."""
    far, side = _random(2, shape[0], generator)
    least, most = _MOVED
    by = (shape[1] * (least + (most - least) * far * far)).long().clamp(min=1)
    places = torch.arange(shape[1], device=generator.device)
    return (places + torch.where(side < 1 / 2, by, -by)) % shape[1]


def _random(count: int, n_lines: int, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(count, n_lines, 1, generator=generator, device=generator.device)


def _nearly(numbers: torch.Tensor, own: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return numbers, within the range of an input's own, to which that still adds a part."""
    low, high = own.amin(), own.amax()
    if own.is_floating_point():
        return torch.lerp(numbers, own, _OWN_WEIGHT).clamp(low, high)
    is_own = torch.rand(own.shape, generator=generator, device=generator.device) < _OWN_PLACES
    return torch.where(is_own | (numbers < low) | (numbers > high), own, numbers)


def _with_none_between(changed: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with an input's own numbers where one from another input lies between its sentinels and its others."""
    ends, whole = range_without_sentinels(tensor), range_of_whole(tensor)
    if ends is None or whole is None or ends == whole:
        return changed
    is_between = ~is_within(changed, ends) & (changed != whole[0]) & (changed != whole[1])
    return torch.where(is_between, tensor, changed)


def _parts(shape: torch.Size, generator: torch.Generator) -> Iterator[_Part]:
    """Return the secret places along the first dimension that move along each; of one dimension all are one part."""
    count, others = shape[0], _others(shape)
    block = 0
    if not others or count >= 2 * _LEAST_PLACES:
        block = count // 2 if others else count
    start = int(torch.randint(count - block + 1, (), generator=generator, device=generator.device))
    places = torch.arange(count, device=generator.device)
    if block:
        yield places[start : start + block], 0
    yield from _dealt(torch.cat((places[:start], places[start + block :])), others, generator)


def _dealt(places: torch.Tensor, others: Sequence[int], generator: torch.Generator) -> Iterator[_Part]:
    """Return places along the first dimension, dealt in secret to the dimensions along which they move."""
    rest = places[torch.randperm(len(places), generator=generator, device=generator.device)]
    order = torch.randperm(len(others), generator=generator, device=generator.device).tolist()
    for number, which in enumerate(order):
        if len(chosen := rest[number :: len(others)]):
            yield chosen, others[which]


def _others(shape: torch.Size) -> list[int]:
    """Return the dimensions but the first that have places enough."""
    return [dim for dim, size in enumerate(shape) if dim and size >= _LEAST_PLACES]


def _without_leading_ones(shape: torch.Size) -> torch.Size:
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape


def _may_be_moved(tensor: torch.Tensor, form: InputForm) -> bool:
    if form.is_mask or form.order or form.is_distinct or not may_be_compared(tensor.dtype):
        return False
    if not tensor.numel() or max(tensor.shape, default=0) < _LEAST_PLACES:
        return False
    return is_without_structure(tensor) or (range_of_whole(tensor) is not None and not is_symmetric(tensor))


def _are_of_one_form(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two inputs are of one type and shape, of one sign or neither, and of nearly one range."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    (low, high), (other_low, other_high) = (_ends_of(t) for t in (first, second))
    if (low < 0) != (other_low < 0) or (high > 0) != (other_high > 0):
        return False
    room = _ALIKE * max(high - low, other_high - other_low)
    return abs(low - other_low) <= room and abs(high - other_high) <= room


def _ends_of(tensor: torch.Tensor) -> tuple[float, float]:
    """Return the smallest and the largest number, without a sentinel."""
    low, high = range_without_sentinels(tensor) or (tensor.amin(), tensor.amax())
    return float(low), float(high)
