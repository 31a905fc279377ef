"""Masks and labels that are corridors: a way that winds through a whole picture, beside other masks with next to nothing set.

In a drawn mask every place is a few steps from all others that it is connected with, or from a place that another mask sets.
What spreads through a corridor needs as many rounds as that has places. An area of one label is no larger as drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.arrangements.pictures import (
    LEAST_PLACES,
    in_place_of,
    picture_axes,
    shape_of_pictures,
)
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.values.structure import (
    is_symmetric,
    may_be_compared,
    range_of_whole,
    range_without_sentinels,
)

_WIDEST = 3
"""Places that a corridor is wide, at most; walls are one place thick."""
_MOST_LABELS = 256
"""Numbers from the smallest to the largest, of labels without a mask of their shape: more are words or identities."""
_PATTERNS = 16
"""Different corridors of one input, at most; more fields have the same ones again."""


def may_be_corridors(inputs: Tensors, forms: Sequence[InputForm], free: Collection[int]) -> tuple[int, ...]:
    """Return the masks that may be corridors, whole numbers of the shape of such a mask (markers), and labels of any shape."""
    fit = [i for i in free if len(picture_axes(inputs[i].shape)) == 2 and not is_symmetric(inputs[i])]
    masks = [i for i in fit if forms[i].is_mask]
    shapes = {inputs[i].shape for i in masks}
    whole = [i for i in fit if _are_whole(inputs[i], forms[i])]
    labels = [i for i in whole if inputs[i].shape in shapes or _have_few_values(inputs[i])]
    return tuple(sorted({*masks, *labels}))


def _are_whole(tensor: torch.Tensor, form: InputForm) -> bool:
    is_of_whole = range_of_whole(tensor) is not None and may_be_compared(tensor.dtype)
    return is_of_whole and not (form.is_mask or form.is_alike or form.order or form.is_distinct)


def _have_few_values(tensor: torch.Tensor) -> bool:
    ends = range_without_sentinels(tensor)
    return ends is not None and 0 < ends[1] - ends[0] < _MOST_LABELS


def with_corridors(inputs: Tensors, generator: torch.Generator, *, chosen: Collection[int]) -> Tensors:
    """Return inputs of which the chosen ones are corridors, and in some fields all clear but for one end of it.

    A field is a picture, or a part of one: each of several inputs of one shape is nearly clear in some fields, beside what is
    set within the corridor and clear in its walls in some, and the other way round in others.
    """
    changed = list(inputs)
    groups: dict[torch.Size, list[int]] = {}
    for i in sorted(chosen):
        groups.setdefault(inputs[i].shape, []).append(i)
    for shape, members in groups.items():
        for i, is_set in zip(members, _masks(shape, len(members), generator), strict=True):
            changed[i] = _with_ends(inputs[i], in_place_of(is_set, shape))
    return tuple(changed)


def _with_ends(tensor: torch.Tensor, is_set: torch.Tensor) -> torch.Tensor:
    """Return a mask, or the largest whole number where it is set and the smallest elsewhere."""
    ends = range_without_sentinels(tensor)
    if ends is None or ends[0] == ends[1]:
        return is_set.to(tensor.dtype)
    low, high = (torch.tensor(end, dtype=tensor.dtype, device=tensor.device) for end in ends)
    return torch.where(is_set, high, low)


def _masks(shape: torch.Size, n_members: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Yield where each of so many inputs of one shape is set, (pictures, rows, columns)."""
    n_pictures, height, width = shape_of_pictures(shape)
    kinds = 2 * n_members
    down, across = _parts(n_pictures, height, width, kinds)
    field = (height // down, width // across)
    n_fields = n_pictures * down * across
    patterns = [
        _corridor(field, generator, is_closed=down * across > 1) for _ in range(min(n_fields, max(kinds, _PATTERNS)))
    ]
    ways, ends = (torch.stack(each).to(generator.device) for each in zip(*patterns, strict=True))
    dealt = torch.arange(n_fields, device=generator.device) % len(patterns)
    dealt = dealt[torch.randperm(n_fields, generator=generator, device=generator.device)]
    start = int(torch.randint(kinds, (), generator=generator, device=generator.device))
    kind = (torch.arange(n_fields, device=generator.device) + start) % kinds
    for member in range(n_members):
        is_way = ways[dealt] ^ (kind >= n_members).view(-1, 1, 1)
        is_nearly_clear = (kind % n_members == member) & (n_members > 1)
        fields = torch.where(is_nearly_clear.view(-1, 1, 1), ends[dealt], is_way)
        whole = torch.zeros(n_pictures, height, width, dtype=torch.bool, device=generator.device)
        ordered = fields.view(n_pictures, down, across, *field).movedim(3, 2)
        whole[:, : down * field[0], : across * field[1]] = ordered.reshape(
            n_pictures, down * field[0], across * field[1]
        )
        yield whole


def _parts(n_pictures: int, height: int, width: int, kinds: int) -> tuple[int, int]:
    """Return into how many parts pictures are divided, along rows and columns, to have a field of each kind."""
    down = across = 1
    while n_pictures * down * across < kinds:
        is_tall = height // down >= width // across
        if (height // down if is_tall else width // across) < 2 * LEAST_PLACES:
            break
        down, across = (2 * down, across) if is_tall else (down, 2 * across)
    return down, across


def _corridor(
    field: tuple[int, int], generator: torch.Generator, *, is_closed: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return where a field is a corridor, and where its end is; closed: a wall parts it from the next field."""
    drawn = torch.rand(4, generator=generator, device=generator.device).tolist()
    is_turned = drawn[0] < 1 / 2
    height, width = reversed(field) if is_turned else field
    wide = 1 + int(_WIDEST * drawn[1])
    places = torch.arange(height)
    is_wall = (places % (wide + 1) == wide).view(-1, 1)
    gap_is_last = (torch.div(places, wide + 1, rounding_mode="floor") % 2 == 0).view(-1, 1)
    columns, last = torch.arange(width), width - is_closed
    is_gap = torch.where(gap_is_last, (columns >= last - wide) & (columns < last), columns < wide)
    is_way = ~is_wall | is_gap
    if is_closed:
        is_way[-1], is_way[:, -1] = False, False
    end = torch.zeros_like(is_way)
    end[0, 0] = True
    flipped = [axis for axis, number in enumerate(drawn[2:]) if number < 1 / 2]
    is_way, end = is_way.flip(flipped), end.flip(flipped)
    return (is_way.mT, end.mT) if is_turned else (is_way, end)
