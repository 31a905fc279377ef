"""Whole numbers of a wide range that are close to one another, or alike but for one bit: keys, hashes, identities, times.

Drawn ones are all far from each other, and any part of their bits tells two of them apart: what sorts, or compares, by some
bits alone is right.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.arrangements.links import Ends
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.values.structure import are_distinct, is_within, range_without_sentinels

_WIDE = 1 << 16
"""Numbers of a wide range, at least."""
_FURTHEST = 3
"""Of a number from the next one, where all are close. A range of no more times the longest dimension of any argument may name
places."""
_WHOLLY = 1 / 2
"""Share of the lines all of whose numbers are close; of each other one a share of its own is."""
_NEAR_ONES = 3
"""Other places along each dimension whose numbers come again but for a bit."""
_CHANGED = 1 / 16
"""Share of an input's places that hold numbers of each of these."""


def may_be_close(inputs: Tensors, forms: Sequence[InputForm], free: Collection[int], longest: int) -> tuple[int, ...]:
    """Return the inputs of a wide range that are neither masks, nor in order, nor places of a dimension of any argument.

    `longest` is how many places any of these has.
    """
    least = max(_WIDE, _FURTHEST * longest + 2)
    return tuple(i for i in free if _is_drawn(inputs[i], forms[i]) and _span(inputs[i]) >= least)


def _is_drawn(tensor: torch.Tensor, form: InputForm) -> bool:
    is_signed = form.is_whole and tensor.dtype.is_signed and not tensor.is_complex()
    if not is_signed or tensor.numel() < 2 or form.is_alike or form.is_mask or form.order or form.is_permuted:
        return False
    return not form.is_distinct or are_distinct(tensor)  # or else rows of the same numbers


def _span(tensor: torch.Tensor) -> int:
    low, high = range_without_sentinels(tensor) or (0, 0)
    return high - low + 1


def with_close_numbers(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return whole numbers of which many lines are close to one another, in the order that they have.

    A line is along the longest dimension. Numbers that are close keep their order, equal ones among them stay equal, and
    different ones of a line stay different.
    """
    low, high = range_without_sentinels(tensor) or (0, 0)
    axis = _long_axis(tensor)
    lines = tensor.movedim(axis, -1)
    if high - low <= _FURTHEST * lines.shape[-1]:
        return tensor
    ordered, order = lines.sort(dim=-1)
    drawn = torch.randint(1, _FURTHEST + 1, ordered.shape, generator=generator, device=generator.device)
    steps = torch.zeros_like(ordered)
    steps[..., 1:] = drawn[..., 1:] * (ordered.diff(dim=-1) != 0)
    above = torch.empty_like(ordered).scatter_(-1, order, steps.cumsum(-1).to(ordered.dtype))
    begins = lines[..., :1].clamp(low, high - _FURTHEST * lines.shape[-1])
    share, places = (torch.rand(t.shape, generator=generator, device=generator.device) for t in (begins, lines))
    is_close = (places < share / _WHOLLY) & is_within(lines, (low, high))
    return torch.where(is_close, begins + above, lines).movedim(-1, axis).contiguous()


def with_bits_changed(tensor: torch.Tensor, ends: Ends, generator: torch.Generator) -> torch.Tensor:
    """Return whole numbers within a range some of which are another one of a line, in any dimension, but for a secret bit."""
    flat, axes = tensor.flatten().clone(), [a for a, size in enumerate(tensor.shape) if size > 1]
    exponents = torch.rand(len(axes), _NEAR_ONES, generator=generator, device=generator.device).tolist()
    distances = [  # near ones as often as far ones
        (tensor.shape[axis], tensor.shape[axis + 1 :].numel(), int(tensor.shape[axis] ** exponent))
        for axis, drawn in zip(axes, exponents, strict=True)
        for exponent in drawn
    ]
    turns = torch.rand(flat.shape, generator=generator, device=generator.device).div_(_CHANGED).int()
    for turn, (size, stride, distance) in enumerate(distances):
        places = (turns == turn).nonzero().flatten()
        place = torch.div(places, stride, rounding_mode="floor") % size
        others = flat[places + ((place + distance) % size - place) * stride]
        numbers, stay_within = one_bit_apart(others, ends, generator)
        own = flat[places]
        flat[places] = torch.where(stay_within & is_within(own, ends), numbers, own)
    return flat.view(tensor.shape)


def one_bit_apart(numbers: torch.Tensor, ends: Ends, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return numbers with another secret bit each, and which are within a range with it and without.

    It is one of the bits in which numbers of that range differ.
    """
    bits = torch.tensor(_bits_between(*ends), dtype=numbers.dtype, device=numbers.device)
    changed = numbers ^ bits[torch.randint(len(bits), numbers.shape, generator=generator, device=generator.device)]
    return changed, is_within(numbers, ends) & is_within(changed, ends)


def _bits_between(low: int, high: int) -> list[int]:
    """Return what changes each bit in which numbers from `low` to `high` differ; the sign, where it may be either, last."""
    if low < 0 <= high:
        count = max((~low).bit_length(), high.bit_length())
        return [*(1 << n for n in range(count)), -1 << count]
    return [1 << n for n in range(max(1, (low ^ high).bit_length()))]


def distinct_again(changed: torch.Tensor, tensor: torch.Tensor, *, is_whole: bool) -> torch.Tensor:
    """Return changed numbers none of which comes twice in a line that had no equal ones: those that would are as they were.

    `is_whole` says that the tensor is one line.
    """
    lines, before = (t.reshape(1, -1) if is_whole else t.movedim(_long_axis(t), -1) for t in (changed, tensor))
    is_distinct = ~_come_twice(before).any(-1, keepdim=True)
    if not bool(is_distinct.any()):
        return changed
    while bool((taken_back := is_distinct & _come_twice(lines) & (lines != before)).any()):
        lines = torch.where(taken_back, before, lines)
    return lines.view(tensor.shape) if is_whole else lines.movedim(-1, _long_axis(tensor)).contiguous()


def _come_twice(lines: torch.Tensor) -> torch.Tensor:
    ordered, order = lines.sort(dim=-1)
    is_next = torch.zeros_like(lines, dtype=torch.bool)
    is_next[..., 1:] = ordered.diff(dim=-1) == 0
    is_twice = is_next.clone()
    is_twice[..., :-1] |= is_next[..., 1:]
    return torch.empty_like(is_twice).scatter_(-1, order, is_twice)


def _long_axis(tensor: torch.Tensor) -> int:
    return max(range(tensor.dim()), key=lambda axis: (tensor.shape[axis], axis))
