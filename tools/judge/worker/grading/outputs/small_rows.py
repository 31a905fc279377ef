"""Rows far below the rest: the limit of rows lets them be anything, so they are compared with their own size.

What is left of a row after a cancellation is luck, in every honest kernel another one. Such a row moves with the last bits
of the operands, or PyTorch itself does not keep it. A row that neither moves is steady, and a kernel that does not have
it has lost it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.replies import Element
from ridgeline.tools.judge.worker.grading.outputs.chunks import rows_at_once
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.judge.worker.grading.outputs.row_sizes import SmallRows
from ridgeline.tools.records.error_map import LimitUse, Measure
from ridgeline.tools.records.precision import LOST_ROW, MIN_ROW_ELEMENTS, NEAR_LIMIT, SMALLEST_ROW, small_share
from ridgeline.tools.records.vocabulary import PrecisionClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """An output that an honest kernel might give, and how far it may be off in a row that is steady, over LOST_ROW."""

    output: torch.Tensor
    allowed: float
    by_operands: bool = False  # it is what other last bits of the operands give


Honest = Callable[[], Iterator[Moved | None]]
"""Makes outputs that honest kernels might give; None where nothing can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Small rows of an output: how far those are off that are steady or right, and which are lost."""

    worst: float  # |o - o64| / |o64| of the worst row
    lost: SmallRows | None = None

    @property
    def use(self) -> LimitUse:
        """Return the worst row's error beside its limit."""
        return LimitUse(measure=Measure.SMALL_ROW, figure=self.worst, limit=LOST_ROW)


def kept_rows(output: torch.Tensor, expected: Expected, precision: PrecisionClass, honest: Honest) -> Kept | None:
    """Return how an output keeps its small rows; None where it has none that can be told.

    Args:
        output: of its own type, right as far as the other limits tell.
        expected: what it should be.
        precision: the loosest class that is accepted of it; it decides which rows are small.
        honest: asked for only where a row is beyond half of its limit, which it hardly ever is.
    """
    rows = _compared(output, expected, precision)
    if not len(rows):
        return None
    errors = row_errors(output, expected, rows)
    doubtful = ~(errors <= NEAR_LIMIT * LOST_ROW)
    steady = ~doubtful
    if bool(doubtful.any()):
        steady[doubtful] = _are_steady(rows.where(doubtful), expected, honest)
    if not bool(steady.any()):
        return None
    lost = rows.where(steady & ~(errors <= LOST_ROW))
    return Kept(worst=float(errors[steady].max()), lost=lost if len(lost) else None)


def row_errors(output: torch.Tensor, expected: Expected, rows: SmallRows) -> torch.Tensor:
    """Return |o - o64| / |o64| of these rows, over what is finite of them."""
    width = output.shape[-1]
    got, want = output.detach().reshape(-1, width), expected.values.reshape(-1, width)
    found = []
    for places in torch.split(rows.places, rows_at_once(output)):
        known = want[places]
        apart = torch.where(torch.isfinite(known), got[places].double() - known, 0.0)
        found.append(torch.linalg.vector_norm(apart, dim=-1))
    return torch.cat(found) / rows.norms


def worst_of_lost(output: torch.Tensor, expected: Expected, lost: SmallRows) -> Element:
    """Return the element that is furthest off in the lost row that is furthest off."""
    width = output.shape[-1]
    place = int(lost.places[row_errors(output, expected, lost).argmax()])
    got, want = output.detach().reshape(-1, width)[place].double(), expected.values.reshape(-1, width)[place]
    column = int(torch.where(torch.isfinite(want), (got - want).abs(), 0.0).argmax())
    index = torch.unravel_index(torch.tensor(place), output.shape[:-1])
    return Element(index=(*map(int, index), column), got=float(got[column]), expected=float(want[column]))


def _compared(output: torch.Tensor, expected: Expected, precision: PrecisionClass) -> SmallRows:
    """Return the small rows that are compared: small in this class, of enough elements, within the type's range."""
    assert expected.small is not None
    width = output.shape[-1]
    least = _smallest_rms(output.dtype, precision) * math.sqrt(width)
    norms, most = expected.small.norms, small_share(precision) * expected.rms * math.sqrt(width)
    rows = expected.small.where((norms < most) & (norms >= least))
    if not len(rows):
        return rows
    values = expected.values.reshape(-1, width)
    counts = [(values[p] != 0).sum(dim=-1) for p in torch.split(rows.places, rows_at_once(values))]
    return rows.where(torch.cat(counts) >= MIN_ROW_ELEMENTS)


def _smallest_rms(dtype: torch.dtype, precision: PrecisionClass) -> float:
    """Return the size below which nothing is asked of a row: a class looser than fp64 ends where float32 does."""
    in_type = SMALLEST_ROW.get(str(dtype).removeprefix("torch."), math.inf)
    return in_type if precision is PrecisionClass.FP64 else max(in_type, SMALLEST_ROW["float32"])


def _are_steady(rows: SmallRows, expected: Expected, honest: Honest) -> torch.Tensor:
    """Return which rows no honest output moves by much, and other last bits of the operands by something.

    A row that they move by nothing depends on whole numbers alone, and nothing is known of it.
    """
    steady = torch.ones(len(rows), dtype=torch.bool, device=rows.places.device)
    is_moved = torch.zeros_like(steady)
    for found in honest():
        if found is None:
            return torch.zeros_like(steady)
        errors = row_errors(found.output, expected, rows)
        steady &= errors < found.allowed * LOST_ROW
        if found.by_operands:
            is_moved |= errors > 0
        if not bool(steady.any()):
            break
    return steady & is_moved
