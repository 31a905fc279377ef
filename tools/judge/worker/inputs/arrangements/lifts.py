"""Inputs lifted in blocks: rows and columns that differ from others, large numbers and small ones that lie together.

Draws, and all other transforms, are alike at each place. What a kernel leaves out for that shows here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch

from ridgeline.tools.judge.worker.inputs.arrangements.mask_links import links_in_groups
from ridgeline.tools.judge.worker.inputs.values.structure import (
    has_structural_zeros,
    is_binary,
    is_symmetric,
    is_within,
)
from ridgeline.tools.judge.worker.inputs.values.symmetry import along_a_line
from ridgeline.tools.judge.worker.inputs.values.transforms import rms_of, two_places

_ROW_RUNS = (8, 16)  # where there are as many rows
_COLUMN_RUNS = (2, 4)
_COMBS = 1 / 2  # of the runs of columns: with a stride
_AT_HOME = 1 / 2  # of the sets, of square matrices
_GROUPS = (4, 8)
_SIZES = (0.9, 1.1)  # of a group over another's: one of them leads by little
_TEETH = 8  # places of a comb, at least
_LEAST_STRIDE = 1 / 3  # as a power of the longest
_OF_POWERS = 3 / 4  # of the strides: a power of two, as lanes, threads and channels are
_LIFTS = (3.0, 9.0)  # times the rms: of a favoured run of columns, and of one column beside that
_NEAR = 1024  # whole numbers are lifted to within this part of their distance from the end
_OWN_SPIKES = 1 / 4  # of the runs of rows


def blocked(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the tensor lifted in blocks: see `lift_blocks`. A symmetric matrix keeps neighbours alone, masks stay."""
    if tensor.dim() == 0 or tensor.numel() == 0 or is_binary(tensor):
        return tensor
    if is_symmetric(tensor):
        return along_a_line(tensor, generator)
    changed = tensor.clone()
    has_zeros = has_structural_zeros(tensor)
    lift_blocks(changed, generator, rms=rms_of(tensor), has_negative=bool((tensor < 0).any()), has_zeros=has_zeros)
    return changed


def may_be_apart(shape: torch.Size) -> bool:
    """Return whether a tensor has rows and columns for some groups of either."""
    return len(shape) > 1 and min(shape[-2:]) >= _GROUPS[1]


def apart(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the tensor with groups that share hardly a column: see `set_apart`. Masks and symmetric matrices stay."""
    if not may_be_apart(tensor.shape) or is_binary(tensor) or is_symmetric(tensor):
        return tensor
    changed = tensor.clone()
    has_zeros = has_structural_zeros(tensor)
    set_apart(changed, generator, rms=rms_of(tensor), has_negative=bool((tensor < 0).any()), has_zeros=has_zeros)
    return changed


def set_apart(
    view: torch.Tensor, generator: torch.Generator, *, rms: float, has_negative: bool, has_zeros: bool
) -> None:
    """Lower, in each of a few runs of rows of every matrix, all columns but a run of its own, in place.

    The runs are of nearly one length. What is made of positive numbers, or by a sigmoid or an exponential, falls into
    groups that hardly touch each other: a power iteration mixes slowly, also where it goes to and fro between rows and
    columns. Zeros that are structure stay.
    """
    count, width = view.shape[-2:]
    least, most = _LIFTS
    was_zero = view == 0 if has_zeros else None
    ends, drawn = _groups(generator)
    for (begin, end), times in zip(pairwise(ends), drawn, strict=True):
        rows = view[..., round(begin * count) : round(end * count), :]
        for others in (slice(round(begin * width)), slice(round(end * width), width)):
            _push(rows[..., others], -1, least + (most - least) * times, rms, has_negative=has_negative)
    if was_zero is not None:
        view[was_zero] = 0


def mask_apart(mask: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a mask with links in such groups: see `links_in_groups`."""
    return links_in_groups(mask, _groups(generator)[0])


def _groups(generator: torch.Generator) -> tuple[list[float], list[float]]:
    """Return the ends of secret groups of nearly one size, as parts of the whole, and a number from 0 to 1 for each group."""
    fewest, many = _GROUPS
    n_groups = int(torch.randint(fewest, many + 1, (), generator=generator, device=generator.device))
    drawn = torch.rand(2, n_groups, generator=generator, device=generator.device, dtype=torch.float64)
    sizes = drawn[0] * (_SIZES[1] - _SIZES[0]) + _SIZES[0]
    return [0.0, *(sizes.cumsum(0) / sizes.sum()).tolist()], drawn[1].tolist()


def lift_blocks(
    view: torch.Tensor, generator: torch.Generator, *, rms: float, has_negative: bool, has_zeros: bool
) -> None:
    """Add numbers of their own to runs of rows and to runs of columns (the last dimension), in place.

    In every run of rows a further run of columns, up to half of them, is far above the others, and one column of it as far
    above that: the same column in most. Others are as far below, or nearer to zero where no number is negative. Half of
    these runs are combs, whose columns lie a stride apart over the whole row, and so do some rows that are above the
    others. The rows that the one column is the place of favour another one, so that a square matrix mixes slowly. In half
    of the sets each run of its rows favours its own columns instead, or shuns them, none more than the others: it mixes
    slowly without a peak.

    Draws, and all other transforms, are alike at each place: no column is the largest in most rows, large numbers never lie
    together or in one lane, and a matrix mixes at once. Where no number is negative, none becomes so. Zeros that are
    structure stay.
    """
    count, width = view.shape[:-1].numel(), view.shape[-1]
    flat = view.view(count, width) if view.is_contiguous() else view.reshape(count, width).clone()
    was_zero = flat == 0 if has_zeros else None
    rows, columns = (_runs(size, within, generator) for size, within in ((count, _ROW_RUNS), (width, _COLUMN_RUNS)))
    # one transfer from a GPU for all of them
    draws = torch.rand(
        6 + len(columns) + 20 * len(rows), generator=generator, device=generator.device, dtype=torch.float64
    ).tolist()
    draw = iter(draws).__next__
    commons = {sign: int(width * draw()) for sign in (-1, 1)}
    low = -1.0 if has_negative else 0.0
    for first, end in columns:
        flat[:, first:end] += rms * (low + (1 - low) * draw())
    least, most = _LIFTS
    flat[_comb(count, int(count * draw()), draw)] += rms * least
    is_at_home = draw() < _AT_HOME and view.dim() > 1 and view.shape[-2] == width
    for first, end in rows:
        flat[first:end] += rms * (low + (1 - low) * draw())
        if is_at_home:
            home = flat[first:end, first % width : first % width + end - first]
            _push(home, 1 if draw() < 1 / 2 else -1, least + (most - least) * draw(), rms, has_negative=has_negative)
            continue
        for sign, common in commons.items():
            is_own, own = draw() < _OWN_SPIKES or first <= common < end, int(width * draw())
            spike = own if is_own else common
            for places in (_run_or_comb(width, spike, draw), slice(spike, spike + 1)):
                times = least + (most - least) * draw()
                _push(flat[first:end, places], sign, times, rms, has_negative=has_negative)
    if was_zero is not None:
        flat[was_zero] = 0
    if flat.data_ptr() != view.data_ptr():
        view.copy_(flat.view(view.shape))


def _push(part: torch.Tensor, sign: int, times: float, rms: float, *, has_negative: bool) -> None:
    """Lift numbers by so many times the rms, or lower them: towards zero where none is negative, by as many powers of two."""
    if sign > 0 or has_negative:
        part += sign * rms * times
    else:
        part *= 2**-times


def lift_whole(view: torch.Tensor, generator: torch.Generator, *, ends: tuple[int, int]) -> None:
    """Bring whole numbers near their smallest, and others near their largest, in places of every run of rows, in place.

    These are a run of columns or a comb. Numbers stay within their range, so that labels, pixels and indices remain such; what
    lies beyond it, a sentinel say, stays. Two of each row stay as they are: in a row of one number alone the rounding of a
    mean would decide.
    """
    count, width = view.shape[:-1].numel(), view.shape[-1]
    flat = view.reshape(count, width)
    rows, kept = _runs(count, _ROW_RUNS, generator), two_places(flat, generator)
    numbers = flat.gather(-1, kept)
    draws = torch.rand(12 * len(rows), generator=generator, device=generator.device, dtype=torch.float64).tolist()
    draw = iter(draws).__next__
    for first, end in rows:
        for bound in ends:
            part = flat[first:end, _run_or_comb(width, int(width * draw()), draw)]
            whole = part.long()
            apart = bound - whole
            apart[(apart < 0) != (whole > bound)] = 0  # beyond what 64 bits hold
            near = bound - torch.div(apart, _NEAR, rounding_mode="trunc")
            part.copy_(torch.where(is_within(whole, ends), near, whole).to(part.dtype))
    flat.scatter_(-1, kept, numbers)
    if flat.data_ptr() != view.data_ptr():
        view.copy_(flat.view(view.shape))


def lifted_whole(tensor: torch.Tensor, generator: torch.Generator, *, ends: tuple[int, int]) -> torch.Tensor:
    """Return whole numbers lifted in blocks: see `lift_whole`."""
    changed = tensor.clone()
    lift_whole(changed, generator, ends=ends)
    return changed


def _run_or_comb(width: int, place: int, draw: Callable[[], float]) -> slice:
    """Return a run of places, of half of them at most, or a comb about as often: with a given place among them."""
    length = math.ceil(max(1.0, width / 2) ** draw())
    start = min(max(0, place - int(length * draw())), width - length)
    return _comb(width, place, draw) if draw() < _COMBS else slice(start, start + length)


def _comb(size: int, place: int, draw: Callable[[], float]) -> slice:
    """Return places a secret stride apart, mostly a power of two, among them a given one: eight, where there are as many."""
    stride = max(1.0, size / _TEETH) ** (_LEAST_STRIDE + (1 - _LEAST_STRIDE) * draw())
    step = 2 ** round(math.log2(stride)) if draw() < _OF_POWERS else int(stride)
    return slice(place % step, size, step)


def _runs(size: int, within: tuple[int, int], generator: torch.Generator) -> list[tuple[int, int]]:
    """Return the secret runs of so many places, (first, end): their number lies within a range where there is room."""
    least, most = (min(count, size) for count in within)
    n_runs = int(torch.randint(least, most + 1, (), generator=generator, device=generator.device))
    inner = torch.randperm(size - 1, generator=generator, device=generator.device)[: n_runs - 1] + 1
    return list(pairwise([0, *inner.sort().values.tolist(), size]))
