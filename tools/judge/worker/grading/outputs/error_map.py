"""Maps a wrong output: which share of it is wrong, at which indices, and how wrong values relate to the expected ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.records.error_map import AxisPattern, ErrorMap, Pattern, Relation

_SLAB_ELEMENTS = 1 << 22
"""Elements that are looked at together: some copies in float64 of 32 MiB each."""
_MOST_ELEMENTS = 1 << 25
"""Largest slab of one index of the first axis; an output with a larger one is not mapped."""
_ALIKE = 1e-3
"""Values that fit a relation to this share of their own size fit it: rounding is finer, chance coarser."""
_FEWEST = 4
"""Fewer wrong elements than this fit relations by chance."""


def map_errors(
    output: torch.Tensor, expected: Expected, limit: float, rows: torch.Tensor | None = None
) -> ErrorMap | None:
    """Return where and how an output (of its own dtype and shape) differs from the expected one; None when it is too large.

    An element is wrong when |o - o64| > limit x (rms(o64) + |o64|), or is not finite where it should be; an integer when
    it is another. With the places of some `rows` the elements of these are wrong, whatever the limit. A large output's
    relation is that of the first slab that fits one.
    """
    shape = output.shape or (1,)
    length = shape[0]
    if output.numel() == 0 or output.numel() // length > _MOST_ELEMENTS:
        return None
    step = max(_SLAB_ELEMENTS // (output.numel() // length), 1)
    values = output.view(torch.uint8) if output.dtype is torch.bool else output  # a byte but 0 and 1 is none
    ours, theirs = values.reshape(shape), expected.values.reshape(shape)
    chosen = None if rows is None else _mask_of(rows, output)
    hits = [torch.zeros(size, dtype=torch.bool, device=output.device) for size in shape]
    found = ErrorMap(wrong=0, total=output.numel())
    for start in range(0, length, step):
        got, want = ours[start : start + step], theirs[start : start + step]
        if not expected.is_exact:  # wide integers would lose digits
            got, want = got.double(), want.double()
        mask = _wrong(got, want, expected, limit) if chosen is None else chosen[start : start + step].expand_as(got)
        count = int(mask.sum())
        if count:
            _mark(hits, mask, start)
            found = replace(found, wrong=found.wrong + count)
            if found.relation is None and count >= _FEWEST and not expected.is_exact:
                found = _related(found, got, want, mask, is_whole=step >= length)
    return replace(found, axes=tuple(_axis_patterns(hits))) if found.wrong else None


def _wrong(got: torch.Tensor, want: torch.Tensor, expected: Expected, limit: float) -> torch.Tensor:
    if expected.is_exact:
        return got != want
    size = torch.nan_to_num(want, 0.0, 0.0, 0.0).abs()
    difference = torch.nan_to_num(got - want, nan=0.0, posinf=0.0, neginf=0.0).abs()
    return (difference > limit * (expected.rms + size)) | (torch.isfinite(got) != torch.isfinite(want))


def _mask_of(rows: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    """Return which rows of an output are at these places; the last dimension is 1."""
    mask = torch.zeros(output.numel() // output.shape[-1], dtype=torch.bool, device=output.device)
    mask[rows] = True
    return mask.reshape(*output.shape[:-1], 1)


def _mark(hits: list[torch.Tensor], mask: torch.Tensor, start: int) -> None:
    """Note at which indices of each axis a slab, which begins at `start` of the first axis, has wrong elements."""
    for axis, seen in enumerate(hits):
        others = [other for other in range(mask.dim()) if other != axis]
        here = mask.any(dim=others) if others else mask
        (seen[start : start + len(here)] if axis == 0 else seen).logical_or_(here)


def _axis_patterns(hits: list[torch.Tensor]) -> Iterator[AxisPattern]:
    for axis, seen in enumerate(hits):
        if not seen.all():
            yield _pattern_of(axis, seen)


def _pattern_of(axis: int, seen: torch.Tensor) -> AxisPattern:
    """Return which indices of an axis are among those seen, one at least. An axis may have as many as the output elements."""
    size, count, first = len(seen), int(seen.sum()), _first(seen)
    last = size - 1 - _first(seen.flip(0))
    step = 1 + _first(seen[first + 1 :]) if count > 1 else 1
    is_regular = last - first == step * (count - 1) and bool(seen[first : last + 1 : step].all())
    whole_axis = is_regular and step > 1 and first < step and last + step >= size
    if count == 1:
        pattern = Pattern.ONE
    elif last - first + 1 == count:
        pattern = Pattern.FIRST if first == 0 else Pattern.LAST if last == size - 1 else Pattern.RANGE
    elif whole_axis and count > 2:
        pattern = Pattern.EVERY
    elif (first, last) == (0, size - 1) and int((seen[:-1] > seen[1:]).sum()) == 1:
        pattern = Pattern.BORDERS
    else:
        pattern = Pattern.SOME
    return AxisPattern(
        axis=axis,
        size=size,
        pattern=pattern,
        count=count,
        first=first,
        last=last,
        step=step if pattern is Pattern.EVERY else 1,
    )


def _first(seen: torch.Tensor) -> int:
    return int(seen.byte().argmax())


def _related(found: ErrorMap, got: torch.Tensor, want: torch.Tensor, mask: torch.Tensor, *, is_whole: bool) -> ErrorMap:
    """Return the map with the first relation that a slab's wrong values fit, the simplest first."""
    if not bool(torch.isfinite(got).all() & torch.isfinite(want).all()):
        return found
    ours, theirs = got[mask], want[mask]
    mean, root = float(ours.mean()), len(ours) ** 0.5
    if _is_near(ours, torch.full_like(ours, mean), _ALIKE * abs(mean) * root):
        return replace(found, relation=Relation.CONSTANT, value=mean)
    ratio = float((ours * theirs).sum() / (theirs * theirs).sum().clamp_min(1e-300))
    if _is_near(ours, ratio * theirs, _ALIKE * abs(ratio) * float(torch.linalg.vector_norm(theirs))):
        return replace(found, relation=Relation.RATIO, value=ratio)
    offset = float((ours - theirs).mean())
    if _is_near(ours - theirs, torch.full_like(ours, offset), _ALIKE * abs(offset) * root):
        return replace(found, relation=Relation.OFFSET, value=offset)
    return _moved(found, got, want, is_whole=is_whole) or _by_axis(found, got, want) or found


def _moved(found: ErrorMap, got: torch.Tensor, want: torch.Tensor, *, is_whole: bool) -> ErrorMap | None:
    """Return the map of an output whose values are right and stand elsewhere."""
    scale = _ALIKE * float(torch.linalg.vector_norm(want))
    if got.dim() > 2 or (got.dim() == 2 and is_whole):
        rows, columns = got.shape[-2:]
        exchanged = got.reshape(*got.shape[:-2], columns, rows).transpose(-1, -2)
        if min(rows, columns) > 1 and _is_near(exchanged, want, scale):
            return replace(found, relation=Relation.TRANSPOSED)
    for axis, size in enumerate(got.shape):
        for places in (1, -1) if size > _FEWEST else ():
            ours, theirs = got.narrow(axis, max(places, 0), size - 1), want.narrow(axis, max(-places, 0), size - 1)
            if _is_near(ours, theirs, scale):
                return replace(found, relation=Relation.SHIFTED, value=places, axis=axis)
    return None


def _by_axis(found: ErrorMap, got: torch.Tensor, want: torch.Tensor) -> ErrorMap | None:
    """Return the map of an output that misses what each index of one axis adds, or its factor."""
    if got.dim() < 2:
        return None
    difference = got - want
    size = float(torch.linalg.vector_norm(difference))
    for axis, length in enumerate(got.shape):
        others = [other for other in range(got.dim()) if other != axis]
        if length < 2 or got.numel() // length < _FEWEST:
            continue
        if _is_near(difference, difference.mean(dim=others, keepdim=True).expand_as(got), _ALIKE * size):
            return replace(found, relation=Relation.OFFSET_BY_AXIS, axis=axis)
        squares = (want * want).sum(dim=others, keepdim=True).clamp_min(1e-300)
        ratio = (got * want).sum(dim=others, keepdim=True) / squares
        if _is_near(got, ratio * want, _ALIKE * size):
            return replace(found, relation=Relation.RATIO_BY_AXIS, axis=axis)
    return None


def _is_near(values: torch.Tensor, model: torch.Tensor, bound: float) -> bool:
    return float(torch.linalg.vector_norm(values - model)) <= bound
