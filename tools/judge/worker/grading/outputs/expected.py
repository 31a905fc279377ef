"""One expected output in float64, with the figures that every comparison with it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.worker.grading.outputs.chunks import chunk_of, rows_at_once, width_of
from ridgeline.tools.judge.worker.grading.outputs.row_sizes import SmallRows, small_rows
from ridgeline.tools.judge.worker.grading.outputs.type_range import within
from ridgeline.tools.records.precision import MIN_ROW_ELEMENTS, ROW_NORM_FLOOR, ROW_SCALE_FLOOR, Errors

_CANCELLED = 1e-2
"""A spread this small beside the norm is not told by the difference of their squares: of its digits four are lost."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One expected output in float64, with the figures that every comparison with it needs."""

    values: torch.Tensor  # float64, or the output's own integer type
    mean: float
    spread: float  # |o64 - mean|, over finite elements
    norm: float  # |o64|
    rms: float
    all_finite: bool = True
    row_norms: torch.Tensor | None = None  # each row's error is divided by its own
    small: SmallRows | None = None  # the rows far below the rest, None for none
    beyond: torch.dtype | None = None  # the output's type, where it cannot hold every value: those are infinite here
    least_spread: float = 0.0  # errors count as beside a spread of this much, where it is less

    @property
    def is_exact(self) -> bool:
        """Return whether the output is integers or bools."""
        return not self.values.is_floating_point()

    @property
    def own_scale(self) -> float:
        """Return its spread, or its norm where all elements are equal."""
        return self.spread or self.norm or 1.0

    @property
    def scale(self) -> float:
        """Return what the norm of all errors is divided by."""
        return max(self.own_scale, self.least_spread)

    def off_by(self, size: float) -> Errors:
        """Return at most how far an output is whose numbers are all off by this size; nothing beside zeros alone."""
        if not self.rms:
            return Errors(overall=0.0)
        element = size / self.rms
        return Errors(
            overall=size * math.sqrt(self.values.numel()) / self.scale,
            worst_row=element / ROW_SCALE_FLOOR,
            worst_element=element,
        )


def expect(values: torch.Tensor, dtype: torch.dtype = torch.float64) -> Expected:
    """Return an expected output of this type with its figures: two passes over it, and nothing of its size beside it.

    A value beyond the type is infinite, as it is in the output. A single one would else be all of a norm, beside which
    the errors of all other values are none.
    """
    if not values.is_floating_point():
        return Expected(values.contiguous(), 0.0, 0.0, 0.0, 0.0)
    values = values.detach().double().contiguous()
    count, finite = values.numel(), values
    sums, norms = _sums_and_norms(values)
    total, norm = _together(sums, norms)
    beyond = None
    if not norm <= torch.finfo(dtype).max:
        held = within(values, dtype)
        if held is not values:
            values = finite = held
            beyond, total = dtype, math.inf
    if not math.isfinite(total):  # a copy without infinities and NaN is as large as the output in float64
        known = torch.isfinite(values)
        count, finite = int(known.sum()), torch.where(known, values, 0.0)
        sums, norms = _sums_and_norms(finite)
        total, norm = _together(sums, norms)
    mean, rms = total / max(count, 1), norm / math.sqrt(max(count, 1))
    squares = norm * norm, count * mean * mean  # infinity where `**` would raise OverflowError: float64 goes further
    spread = math.sqrt(max(squares[0] - squares[1], 0.0)) if math.isfinite(sum(squares)) else 0.0
    if spread < _CANCELLED * norm:
        spread = _norm_about(mean, values)
    scales = _row_scales(finite, sums, norms, rms) if _has_rows(values) else None
    small = small_rows(norms, rms * math.sqrt(width_of(values))) if _has_rows(values) else None
    return Expected(values, mean, spread, norm, rms, count == values.numel(), scales, small, beyond)


def _has_rows(values: torch.Tensor) -> bool:
    """Return whether there are rows, and each is long enough to be judged by itself."""
    return values.dim() > 0 and values.numel() > 0 and values.shape[-1] >= MIN_ROW_ELEMENTS


def _sums_and_norms(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sum and the norm of each row; of parts as large as a chunk where there are no rows."""
    if _has_rows(values):
        parts = torch.split(values.reshape(-1, width_of(values)), rows_at_once(values))
        pairs = [(part.sum(dim=-1), torch.linalg.vector_norm(part, dim=-1)) for part in parts]
    else:
        parts = torch.split(values.reshape(-1), chunk_of(values))
        pairs = [(part.sum().reshape(1), torch.linalg.vector_norm(part).reshape(1)) for part in parts]
    sums, norms = zip(*pairs, strict=True)
    return (sums[0], norms[0]) if len(pairs) == 1 else (torch.cat(sums), torch.cat(norms))


def _together(sums: torch.Tensor, norms: torch.Tensor) -> tuple[float, float]:
    """Return the sum and the norm of everything, both fetched at once."""
    total, norm = torch.stack([sums.sum(), torch.linalg.vector_norm(norms)]).tolist()
    return total, norm


def _norm_about(mean: float, values: torch.Tensor) -> float:
    """Return |values - mean| over finite elements."""
    norms = []
    for part in torch.split(values.reshape(-1), chunk_of(values)):
        moved = part - mean
        norms.append(torch.linalg.vector_norm(moved.where(torch.isfinite(part), 0.0)))
    return float(torch.linalg.vector_norm(torch.stack(norms)))


def _row_scales(values: torch.Tensor, sums: torch.Tensor, norms: torch.Tensor, rms: float) -> torch.Tensor:
    """Return each row's scale, which its error is divided by."""
    floor = ROW_SCALE_FLOOR * rms * math.sqrt(width_of(values))
    spreads = _row_spreads(values.reshape(-1, width_of(values)), sums, norms)
    return torch.maximum(spreads, norms * ROW_NORM_FLOOR).clamp_(min=floor or 1.0)


def _row_spreads(rows: torch.Tensor, sums: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
    """Return |row - mean(row)| of each row: row by row only where the difference of two squares has too few digits."""
    squares = norms.square()
    left = squares - (sums / math.sqrt(rows.shape[-1])).square()
    spreads = left.clamp(min=0.0).sqrt()
    cancelled = (~(left >= _CANCELLED**2 * squares)).nonzero().flatten()  # or they have no number
    for some in torch.split(cancelled, rows_at_once(rows)) if len(cancelled) else ():
        picked = rows[some]
        spreads[some] = torch.linalg.vector_norm(picked.sub_(picked.mean(dim=-1, keepdim=True)), dim=-1)
    return spreads
