"""Errors of an output against the expected one, in bounded chunks."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.replies import Element
from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.grading.outputs.chunks import rows_at_once, width_of
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.judge.worker.grading.outputs.type_range import non_finite_mismatch
from ridgeline.tools.records.precision import Errors

_FLOAT32_RANGE, _FLOAT32_SCATTER = 1e30, 1e-6
"""A quotient taken in float32 has digits between 1 / this and this, and is off by 3 x 2^-24 of itself at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The result of comparing one output."""

    errors: Errors
    crfm: float = 0.0  # max |o - o64| / (max(1, rms) + |o64|)
    worst: Element | None = None  # the one that is furthest off
    non_finite: Element | None = None  # an element whose NaN or infinity does not match
    wrong_integers: int = 0  # integers and bools
    invalid_bools: int = 0  # of these, bytes that are no bool


def compare(
    output: torch.Tensor, expected: Expected, *, with_crfm: bool = False, with_worst: bool = False
) -> Difference:
    """Return how far an output (of its own dtype) is from the expected one of the same shape.

    `with_crfm` computes the figure of the 1e-2 rule too, which costs another pass; `with_worst` finds the worst element
    too, which costs several. Integers and bools always have theirs.
    """
    if expected.is_exact:
        return _compare_exact(output, expected)
    found = None if with_worst or not expected.all_finite else _compare_finite(output, expected, with_crfm=with_crfm)
    return found or _compare_any(output, expected, with_crfm=with_crfm)


def beside(want: torch.Tensor, apart: torch.Tensor, by: torch.Tensor | float) -> torch.Tensor:
    """Return numbers as far from the wanted ones as these are `apart`, less what they may be off `by`."""
    return want + torch.copysign((apart.abs() - by).clamp_(min=0.0), apart)


def _compare_finite(output: torch.Tensor, expected: Expected, *, with_crfm: bool) -> Difference | None:
    """Return how far an output is, None where it is not finite, or the square of a difference is not.

    Nothing is looked for: a sum of squared differences is finite only where every element is. Figures stay on the device
    until all are there, and two buffers serve all chunks.
    """
    figures: list[list[torch.Tensor]] = [[], [], [], []]  # a tensor of one number for each chunk, or two: both ends
    squares, rows_off, elements_off, crfms = figures
    difference, size = _room_for(expected, _sizes_in(output, expected, with_crfm=with_crfm))
    for _, got, want, over in _chunks(output, expected):
        apart, sizes = difference[: len(want)], size[: len(want)]
        rows = torch.linalg.vector_norm(torch.sub(got, want, out=apart), dim=-1)  # got is made float64 on the way
        squares.append((rows**2).sum())
        if over is not None:
            rows_off.append((rows / over).max())
        _write_sizes(want, sizes)
        if with_crfm:
            crfms.extend(torch.aminmax(apart / (sizes + max(1.0, expected.rms))))
        elements_off.extend(_ends_of_quotients(apart, sizes, expected))
    fetched = _fetched(*figures)
    total = functools.reduce(operator.add, fetched[0], 0.0)  # in this order: `sum` compensates for rounding
    if not math.isfinite(total):
        return None
    worst_row, worst_element, crfm = (max([0.0, *map(abs, numbers)]) for numbers in fetched[1:])
    if size.dtype is not torch.float64:
        by_chunk = [max(-low, high) for low, high in zip(fetched[2][::2], fetched[2][1::2], strict=True)]
        worst_element = _refined(by_chunk, output, expected, difference)
    errors = Errors(overall=_overall(total, expected), worst_row=worst_row, worst_element=worst_element)
    return Difference(errors=errors, crfm=crfm)


def _sizes_in(output: torch.Tensor, expected: Expected, *, with_crfm: bool) -> torch.dtype:
    """Return the type in which elements' errors are taken first: float32 where memory's traffic is what costs time."""
    is_in_range = 1 / _FLOAT32_RANGE < expected.rms < _FLOAT32_RANGE
    return torch.float32 if _is_coarse_first(output) and is_in_range and not with_crfm else torch.float64


def _is_coarse_first(output: torch.Tensor) -> bool:
    return output.is_cuda  # a CPU's chunks lie in its caches, and it converts into buffers of its own


def _write_sizes(want: torch.Tensor, sizes: torch.Tensor) -> None:
    """Write |want| into a buffer, whose type may be another one: `abs` does not write that."""
    if sizes.dtype is want.dtype:
        torch.abs(want, out=sizes)
    else:
        torch.copysign(want, 1.0, out=sizes)


def _ends_of_quotients(
    apart: torch.Tensor, sizes: torch.Tensor, expected: Expected
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the smallest and the largest difference / (size + rms), taken in the sizes' type; the sizes are lost."""
    lowest, highest = torch.aminmax(torch.div(apart, sizes.add_(expected.rms or 1.0), out=sizes))
    return lowest.double(), highest.double()


def share_beyond(output: torch.Tensor, expected: Expected, size: float) -> float:
    """Return the share of an output's elements that are off by more than a size, or by no number."""
    chunks = ((got, want) for _, got, want, _ in _chunks(output, expected))
    counts = [int(((got != want) & ~((got - want).abs() <= size)).sum()) for got, want in chunks]
    return sum(counts) / max(output.numel(), 1)


def _refined(by_chunk: Sequence[float], output: torch.Tensor, expected: Expected, room: torch.Tensor) -> float:
    """Return the worst element's error in float64: that of the chunks whose figure in float32 is nearly the largest."""
    coarse = max(by_chunk, default=0.0)
    chunks = list(_chunks(output, expected))
    if coarse == 0.0 and not any(bool((got != want).any()) for _, got, want, _ in chunks):
        return 0.0
    has_digits = 1 / _FLOAT32_RANGE < coarse < _FLOAT32_RANGE
    least = (1 - _FLOAT32_SCATTER) * coarse if has_digits else 0.0
    sizes = torch.empty_like(room)
    ends: list[torch.Tensor] = []
    for figure, (_, got, want, _over) in zip(by_chunk, chunks, strict=True):
        if figure >= least:
            apart, size = torch.sub(got, want, out=room[: len(want)]), sizes[: len(want)]
            _write_sizes(want, size)
            ends.extend(_ends_of_quotients(apart, size, expected))
    return max(map(abs, _fetched(ends)[0]))


def _compare_any(output: torch.Tensor, expected: Expected, *, with_crfm: bool) -> Difference:
    """Return how far an output is, with its worst element; NaN and infinity must be where they are expected."""
    all_finite = expected.all_finite and is_finite(output)
    total, worst_row, worst_ratio, crfm = 0.0, 0.0, 0.0, 0.0
    worst: Element | None = None
    for start, stored, want, over in _chunks(output, expected):
        got = stored.double()
        if not all_finite:
            mismatch = non_finite_mismatch(got, want, output.dtype)
            if mismatch is not None:
                found = _located(output, start, mismatch, want)
                return Difference(errors=_INFINITE, crfm=math.inf, non_finite=found)
        difference = (got - want).abs_() if all_finite else torch.nan_to_num_((got - want).abs_(), 0.0, 0.0, 0.0)
        rows = torch.linalg.vector_norm(difference, dim=-1)
        total += float((rows**2).sum())
        if over is not None:
            worst_row = max(worst_row, float((rows / over).max()))
        magnitude = want.abs() if all_finite else torch.nan_to_num(want, nan=0.0, posinf=0.0, neginf=0.0).abs_()
        if with_crfm:
            crfm = max(crfm, float((difference / (magnitude + max(1.0, expected.rms))).max()))
        largest, index = difference.div_(magnitude.add_(expected.rms or 1.0)).flatten().max(dim=0)
        if float(largest) > worst_ratio:
            worst_ratio, worst = float(largest), _located(output, start, int(index), want)
    errors = Errors(overall=_overall(total, expected), worst_row=worst_row, worst_element=worst_ratio)
    return Difference(errors=errors, crfm=crfm, worst=worst)


def _overall(total: float, expected: Expected) -> float:
    return math.sqrt(total) / expected.scale


def _fetched(*figures: list[torch.Tensor]) -> list[list[float]]:
    """Return the numbers of each list, all fetched from the device at once."""
    together = [number for numbers in figures for number in numbers]
    values = iter(torch.stack(together).tolist() if together else ())
    return [list(itertools.islice(values, len(numbers))) for numbers in figures]


_INFINITE = Errors(overall=math.inf, worst_row=math.inf, worst_element=math.inf)


def _compare_exact(output: torch.Tensor, expected: Expected) -> Difference:
    """Return how far integers are off, and bools: a byte but 0 and 1 is none, though PyTorch takes it for True here."""
    is_bool = output.dtype is torch.bool
    values = output.view(torch.uint8) if is_bool else output
    wrong = (values != expected.values).flatten()
    count = int(wrong.sum())
    if count == 0:
        return Difference(errors=Errors(overall=0.0))
    invalid = (values > 1).flatten() if is_bool else torch.zeros_like(wrong)
    invalid_bools = int(invalid.sum())
    told = invalid if invalid_bools else wrong  # an invalid one before a wrong one
    index = int(told.to(torch.uint8).argmax())
    worst = Element(
        index=_unravel(index, output.shape),
        got=int(values.flatten()[index]),
        expected=int(expected.values.flatten()[index]),
    )
    share = count / wrong.numel()
    return Difference(
        errors=Errors(overall=share, worst_row=math.inf, worst_element=math.inf),
        crfm=math.inf,
        worst=worst,
        wrong_integers=count,
        invalid_bools=invalid_bools,
    )


def _chunks(
    output: torch.Tensor, expected: Expected
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor, torch.Tensor | None]]:
    """Yield (first element, output rows, expected rows, the rows' scales)."""
    width = width_of(output)
    got, want = output.detach().reshape(-1, width), expected.values.reshape(-1, width)
    rows = rows_at_once(output)
    for row in range(0, got.shape[0], rows):
        over = None if expected.row_norms is None else expected.row_norms[row : row + rows]
        yield row * width, got[row : row + rows], want[row : row + rows], over


def _room_for(expected: Expected, sizes_in: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two buffers as large as a chunk, the second one of this type."""
    first = expected.values.reshape(-1, width_of(expected.values))[: rows_at_once(expected.values)]
    return torch.empty_like(first), torch.empty_like(first, dtype=sizes_in)


def _located(output: torch.Tensor, start: int, index: int, want: torch.Tensor) -> Element:
    flat = start + index
    value = output.reshape(-1)[flat] if output.dim() else output
    return Element(index=_unravel(flat, output.shape), got=float(value), expected=float(want.reshape(-1)[index]))


def _unravel(flat: int, shape: torch.Size) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))
