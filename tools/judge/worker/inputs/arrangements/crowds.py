"""Inputs most of whose numbers are one of them: what counts them, or has room for so many of each, has to hold that.

Rows are crowded around numbers of their own, or all of them around the largest: sums of those need the most room. Beside
these the ends of [0, 1] come, which `torch.rand` does not give, or hardly ever, and bytes that are divided by 255 do.
"""

from __future__ import annotations

import functools

import torch

from ridgeline.tools.judge.worker.inputs.values.structure import (
    is_mask,
    is_symmetric,
    is_without_structure,
    range_of_whole,
    row_axis,
    with_sentinels_of,
    without_sentinels,
)
from ridgeline.tools.judge.worker.inputs.values.transforms import random_index, two_places
from ridgeline.tools.judge.worker.inputs.variation import Way, with_its_rows
from ridgeline.tools.records.trial_names import CROWDED, CROWDED_HIGH

_CROWDED = 15 / 16
"""Largest share of the elements of a row that are made one number; in one secret row all may be."""
_FURTHER = 2.0
"""How much further from zero the smallest number is than the largest, to be the one that most are."""
_LESS_HIGH = 1 / 4
"""Part of that share by which rows, and columns, around the largest number have less at most."""
_OWN_ROWS = 1 / 2
"""Share of the rows whose number is one of their own."""
_NEAR_END = 1 / 16
"""How near to 0 and to 1 the ends of numbers lie that are taken for drawn from [0, 1)."""
_AT_ENDS = 1 / 16
"""Share of the places of such an input that hold these ends."""
_WAYS_OF_ENDS = ((0.0, 1.0), (1.0,), (0.0,))
"""The ends that come, the widest first: a reference may divide by one of them, or take its logarithm."""


def ways_to_crowd(trial: str, tensor: torch.Tensor, *, is_alike: bool) -> tuple[Way, ...]:
    """Return the ways to make most of an input's numbers one of them, the widest first; none where structure forbids it.

    It is no sentinel. Of whole numbers that are always alike it is their lowest, which is valid in the place of any; their
    largest may not be, and sentinels stay. Along no dimension is there one number alone, whose variance would be a rounding
    error: two places stay as they are, but for a row and a column of the whole number nearest to zero, whose mean is exact.
    """
    if tensor.numel() < 2 or (is_mask(tensor) and tensor.dtype != torch.bool and is_symmetric(tensor)):
        return ()
    if is_mask(tensor):
        return _ways_of_masks(tensor) if trial == CROWDED else (_crowded_high,)
    is_whole = range_of_whole(tensor) is not None
    if not is_whole and not is_without_structure(tensor):
        return ()
    if trial == CROWDED_HIGH and not is_whole and _is_of_unit_range(tensor):
        return (*(functools.partial(_crowded_high, ends=ends) for ends in _WAYS_OF_ENDS), _crowded_high)
    if trial == CROWDED_HIGH:
        return () if is_whole and is_alike else (_crowded_high,)
    if not is_whole:
        return (functools.partial(_crowded, has_row=False, has_lowest=False),)
    has_rows = (True, False) if tensor.dim() > 1 else (False,)
    return tuple(functools.partial(_crowded, has_row=has_row, has_lowest=is_alike) for has_row in has_rows)


def _ways_of_masks(mask: torch.Tensor) -> tuple[Way, ...]:
    """Return the ways to make rows of a mask mostly set or clear: one of them wholly clear and one wholly set, or either."""
    wholly = ((0, 1), (1,), (0,), ()) if mask.numel() > mask.shape[row_axis(mask)] else ((),)
    return tuple(functools.partial(_crowded_mask, wholly=each) for each in wholly)


def _crowded_mask(mask: torch.Tensor, generator: torch.Generator, *, wholly: tuple[int, ...]) -> torch.Tensor:
    """Return a mask whose rows are mostly set or mostly clear, and secret ones wholly so."""
    axis = row_axis(mask)
    is_set = (mask != 0).movedim(axis, -1).contiguous()
    changed = with_its_rows(_crowded(is_set, generator, has_row=False, has_lowest=False), is_set)
    rows = changed.view(-1, changed.shape[-1])
    places = torch.randperm(len(rows), generator=generator, device=generator.device)
    for place, value in zip(places, wholly, strict=False):
        rows[place] = bool(value)
    return changed.movedim(-1, axis).to(mask.dtype).contiguous()


def _is_of_unit_range(tensor: torch.Tensor) -> bool:
    """Return whether numbers seem drawn from [0, 1)."""
    low, high = map(float, torch.aminmax(tensor))
    return 0 <= low <= _NEAR_END and 1 - _NEAR_END <= high <= 1


def _crowded(tensor: torch.Tensor, generator: torch.Generator, *, has_row: bool, has_lowest: bool) -> torch.Tensor:
    """Return numbers that are mostly a secret one, or the lowest, in each row to another share.

    In about half of the rows it is one of the row's own: else that of all rows is above 0, or not, by chance. With
    `has_row` a secret row, and a place of every row, hold the number nearest to zero alone: without variance, but with an
    exact mean.
    """
    numbers = without_sentinels(tensor, generator)
    value = numbers.min() if has_lowest else numbers[random_index(tensor.shape, generator)]
    if tensor.dim() > 1 and not has_lowest:
        rows = (*tensor.shape[:-1], 1)
        places = torch.randint(tensor.shape[-1], rows, generator=generator, device=generator.device)
        is_own = torch.rand(rows, generator=generator, device=generator.device) < _OWN_ROWS
        value = torch.where(is_own, numbers.gather(-1, places), value)
    shares = torch.rand((*tensor.shape[:-1], 1), generator=generator, device=generator.device)
    most = _CROWDED * (1 - shares * shares) if tensor.dim() > 1 else _CROWDED
    is_one = torch.rand(tensor.shape, generator=generator, device=generator.device) < most
    if tensor.dtype != torch.bool:
        _keep_some(is_one, generator)
    if tensor.is_floating_point():
        value = _with_few_bits(value, tensor)
    changed = torch.where(is_one, value, tensor)
    if has_row:
        nearest = _nearest_to_zero(numbers)
        changed[random_index(tensor.shape[:-1], generator)] = nearest
        column: tuple[slice | int, ...] = (slice(None), *random_index(tensor.shape[1:], generator))
        changed[column] = nearest
    return with_sentinels_of(tensor, changed) if has_lowest else changed


def _keep_some(is_changed: torch.Tensor, generator: torch.Generator) -> None:
    """Leave two places unchanged along each dimension: of one number alone the variance is a rounding error."""
    for dim in range(is_changed.dim()):
        is_changed.scatter_(dim, two_places(is_changed, generator, dim), value=False)


def _crowded_high(tensor: torch.Tensor, generator: torch.Generator, *, ends: tuple[float, ...] = ()) -> torch.Tensor:
    """Return numbers that are mostly the largest of them all, in every row and column, to another share in each.

    Where the smallest is much further from zero, it is that. Means with one share would be nearly one number, of which last
    bits decide the rest. Some places hold the `ends` of a range.
    """
    shape = tensor.shape if tensor.dim() > 1 else (1, *tensor.shape)
    row, column = (
        1 - _LESS_HIGH * torch.rand(each, generator=generator, device=generator.device) ** 2
        for each in ((*shape[:-1], 1), shape[-1:])
    )
    most = (_CROWDED * row * column).view(tensor.shape)
    is_end = torch.rand(tensor.shape, generator=generator, device=generator.device) < most
    if tensor.dtype == torch.bool:
        return tensor | is_end
    _keep_some(is_end, generator)
    numbers = without_sentinels(tensor, generator)
    low, high = numbers.min(), numbers.max()
    end = torch.where(-low.double() > _FURTHER * high.double(), low, high)
    if tensor.is_floating_point():
        end = _with_few_bits(end, tensor)
        # what is hardly beyond it would be all that differs among the largest of a row
        tensor = torch.where(end < 0, tensor.clamp(min=end), tensor.clamp(max=end))
    changed = torch.where(is_end, end, tensor)
    return _with_ends(changed, ends, generator) if ends else changed


def _with_ends(tensor: torch.Tensor, ends: tuple[float, ...], generator: torch.Generator) -> torch.Tensor:
    """Return numbers some of whose places hold the ends of a range, one of them at least."""
    is_at_end = torch.rand(tensor.shape, generator=generator, device=generator.device) < _AT_ENDS
    is_at_end[random_index(tensor.shape, generator)] = True
    which = torch.randint(len(ends), tensor.shape, generator=generator, device=generator.device)
    return torch.where(is_at_end, torch.tensor(ends, dtype=tensor.dtype, device=tensor.device)[which], tensor)


def _with_few_bits(value: torch.Tensor, within: torch.Tensor) -> torch.Tensor:
    """Return the next number towards zero of three significant bits; the number itself where that is beyond all of `within`.

    Sums and products of such numbers are exact. Where most terms are one number, all would have one rounding error, and a
    sum in one lane be as far off as a single term.
    """
    mantissa, exponent = torch.frexp(value.double())
    short = torch.ldexp(torch.trunc(mantissa * 2**3) / 2**3, exponent).to(value.dtype)
    return torch.where((short < within.min()) | (short > within.max()), value, short)


def _nearest_to_zero(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.flatten()
    return flat[flat.double().abs().argmin()]
