"""Inputs with connected areas: masks that are wholly set within some and clear outside, and numbers that are alike there.

Draws are independent at each place: no area of a drawn mask is more than a few places wide, so that what wears it off, fills
it or measures it is done after as few rounds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.arrangements.pictures import (
    in_place_of,
    picture_axes,
    pictures_of,
    shape_of_pictures,
)
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.values.structure import (
    is_symmetric,
    is_without_structure,
    may_be_compared,
    range_of_whole,
    row_axis,
    without_sentinels,
)

_LARGE = (1 / 2, 3 / 4)
"""Sides of a picture's first area, of a dimension's places."""
_SMALL = (1 / 4, 1 / 2)
"""Sides of its further ones, and of the only one that is clear."""
_MOST_FURTHER = 2
"""Areas of a picture beside its first one, at most."""
_BEYOND = 1 / 4
"""Of the room that an area has to either side: how far its place is drawn beyond that, so that some areas touch an end."""
_PICKED = 16
"""Numbers of a picture of which the largest, or the smallest, is that of an area."""
_OWN_WEIGHT = 1 / 8
"""Of each floating-point number in an area, what stays of the input's own."""
_WITH_OTHERS = 1 / 2
"""Share of the pictures in which numbers outside of the areas are alike too."""


def may_have_areas(inputs: Tensors, forms: Sequence[InputForm], free: Collection[int]) -> tuple[int, ...]:
    """Return the inputs that may have areas: masks, labels and other numbers, without other structure."""
    pairs = enumerate(zip(inputs, forms, strict=True))
    return tuple(i for i, (tensor, form) in pairs if i in free and _may_have_areas(tensor, form))


def _may_have_areas(tensor: torch.Tensor, form: InputForm) -> bool:
    if not picture_axes(tensor.shape) or not tensor.numel() or form.order or form.is_distinct or is_symmetric(tensor):
        return False
    if form.is_mask:
        return True
    if form.is_alike:
        return False
    if range_of_whole(tensor) is not None:
        return may_be_compared(tensor.dtype)
    return is_without_structure(tensor)


def with_areas(
    inputs: Tensors,
    generator: torch.Generator,
    *,
    chosen: Collection[int],
    forms: Sequence[InputForm],
    unlike: Collection[int] = (),
) -> Tensors:
    """Return inputs of which the chosen ones have areas; no row becomes alike in those that are `unlike`."""
    return tuple(
        _with_areas(t, generator, is_mask=forms[i].is_mask, is_unlike=i in unlike) if i in chosen else t
        for i, t in enumerate(inputs)
    )


def _with_areas(tensor: torch.Tensor, generator: torch.Generator, *, is_mask: bool, is_unlike: bool) -> torch.Tensor:
    shape = shape_of_pictures(tensor.shape)
    order = torch.randperm(shape[0] + 1, generator=generator, device=generator.device)[: shape[0]]
    is_set = areas(shape, order % 2 == 0, generator)
    pictures = is_set.to(tensor.dtype) if is_mask else _with_numbers(pictures_of(tensor), is_set, generator)
    changed = in_place_of(pictures, tensor.shape)
    if is_unlike:
        ends = (reduce(row_axis(tensor), keepdim=True) for reduce in (changed.amin, changed.amax))
        changed = torch.where(torch.eq(*ends), tensor, changed)
    return changed


def areas(shape: tuple[int, int, int], is_inside: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return where pictures are set: within a few areas where `is_inside`, all around a smaller one in the others."""
    is_inside = is_inside.view(-1, 1, 1)
    most_further = (
        _MOST_FURTHER if shape[1] > 1 else 0
    )  # along one dimension they would hide all that is beside the first
    n_further = int(torch.randint(most_further + 1, (), generator=generator, device=generator.device))
    is_set = torch.where(is_inside, _area(shape, _LARGE, generator), _area(shape, _SMALL, generator))
    for _ in range(n_further):
        is_set |= _area(shape, _SMALL, generator) & is_inside
    return is_set ^ ~is_inside


def _area(shape: tuple[int, int, int], sides: tuple[float, float], generator: torch.Generator) -> torch.Tensor:
    """Return where each picture has a rectangle of secret sides at a secret place, or an ellipse in one."""
    n_pictures, *sizes = shape
    least, most = sides
    drawn = torch.rand(5, n_pictures, 1, 1, generator=generator, device=generator.device)
    along = []
    for axis, size in enumerate(sizes):
        side, place = drawn[2 * axis : 2 * axis + 2]
        length = (size * (least + (most - least) * side)).round().clamp(min=1)
        first = ((size - length) * ((1 + 2 * _BEYOND) * place - _BEYOND).clamp(0, 1)).round()
        places = torch.arange(size, device=generator.device, dtype=torch.float32).view(
            (-1, 1) if axis == 0 else (1, -1)
        )
        along.append(2 * (places - first - (length - 1) / 2).abs() / length if size > 1 else 0 * places)
    rows, columns = along
    return torch.where(drawn[4] < 1 / 2, torch.maximum(rows, columns), rows * rows + columns * columns) < 1


def _with_numbers(pictures: torch.Tensor, is_set: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return pictures whose numbers are near a large one where they are set, or a small one; some near the other elsewhere.

    Neither is a sentinel.
    """
    flat = without_sentinels(pictures, generator).flatten(1)
    places = torch.randint(flat.shape[1], (len(flat), _PICKED), generator=generator, device=generator.device)
    picked = flat.gather(1, places)
    drawn = torch.rand(2, len(flat), 1, 1, generator=generator, device=generator.device)
    is_high, is_other = drawn[0] < 1 / 2, drawn[1] < _WITH_OTHERS
    low, high = (each.view(-1, 1, 1) for each in (picked.amin(1), picked.amax(1)))
    inside, outside = torch.where(is_high, high, low), torch.where(is_high, low, high)
    number = torch.where(is_set, inside, outside)
    if pictures.is_floating_point():
        number = torch.lerp(number, pictures, _OWN_WEIGHT)
    return torch.where(is_set | is_other, number, pictures)
