"""The well-conditioned part of an output: the elements that other last bits move least, held to a limit of their own.

One denominator next to zero makes an element huge, and leaves few digits of it in every kernel. PyTorch's own error there
is most of the whole output's, and a limit that is a multiple of it would let all other elements lose digits too.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.worker.grading.outputs.compare import beside
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.judge.worker.grading.outputs.small_rows import Moved
from ridgeline.tools.records.error_map import LimitUse, Measure
from ridgeline.tools.records.precision import (
    BEYOND_SUMS,
    FEWEST_CONDITIONED,
    LAST_BITS_REACH,
    NEAR_LIMIT,
    WELL_CONDITIONED_SHARE,
    part_gate,
)
from ridgeline.tools.records.vocabulary import PrecisionClass

_MOST_ELEMENTS = 1 << 24
"""Elements that are looked at, 128 MiB in float64: of a larger output those at even distances from a secret place on."""


@dataclass(frozen=True, slots=True)
class WellConditioned:
    """The part of one output, in one precision class, that other last bits move least."""

    places: slice  # of the flat output: the elements that are looked at
    chosen: torch.Tensor  # true for those of them that are of the part
    want: torch.Tensor  # the part's expected values, float64
    scale: float  # |o64 - mean(o64)| over the part
    own: float  # the most that an honest output errs there, over the scale

    def error(self, output: torch.Tensor) -> float:
        """Return |o - o64| / |o64 - mean(o64)| over the part, of an output of the same shape; numbers alone count."""
        return self._over_scale(self._of(output) - self.want)

    def apart(self, output: torch.Tensor, other: torch.Tensor) -> float:
        """Return |o - o'| / |o64 - mean(o64)| of two outputs, over the part; numbers alone count."""
        return self._over_scale(self._of(output) - self._of(other))

    def _of(self, output: torch.Tensor) -> torch.Tensor:
        return output.detach().reshape(-1)[self.places][self.chosen].double()

    def _over_scale(self, apart: torch.Tensor) -> float:
        return float(torch.linalg.vector_norm(apart.nan_to_num(0.0, 0.0, 0.0))) / self.scale

    def without_the_others(
        self, output: torch.Tensor, expected: Expected, moved: Iterable[torch.Tensor]
    ) -> torch.Tensor:
        """Return an output in float64, nearer to the expected one in each other element by as much as moved ones reach there.

        A number may be as far off as twice the furthest of them at that very place, as where last bits decide on a jump. Of
        an output of which only some elements were looked at nothing is known of the others: it stays as it is.
        """
        want, reached = expected.values.reshape(-1), torch.zeros_like(self.chosen, dtype=torch.float64)
        if len(want) != len(self.chosen):
            return output
        for each in moved:
            apart = (each.reshape(-1).double() - want).abs_().nan_to_num_(0.0, 0.0, 0.0)
            reached = torch.maximum(reached, apart, out=reached)
        given = output.detach().reshape(-1).double()
        apart = given - want
        nearer = beside(want, apart, LAST_BITS_REACH * reached)
        stays = self.chosen | ~torch.isfinite(apart)
        return torch.where(stays, given, nearer).reshape(expected.values.shape)

    def use(
        self,
        output: torch.Tensor,
        precision: PrecisionClass,
        condition: float,
        lost_another_way: Callable[[int], float | None],
    ) -> LimitUse:
        """Return an output's error there beside its limit.

        Args:
            output: of its own type and shape.
            precision: the class whose limit it is.
            condition: the whole output's condition number where that counts, else 1.
            lost_another_way: gives what each way of plain sums loses there, then PyTorch beside the case, None after the last;
                asked while the error is beyond half of the limit.
        """
        figure, most, way = self.error(output), self.own, 0
        limit = part_gate(precision, most, condition)
        while NEAR_LIMIT * limit < figure <= BEYOND_SUMS * limit and (lost := lost_another_way(way)) is not None:
            most, way = max(most, lost), way + 1
            limit = part_gate(precision, most, condition)
        return LimitUse(measure=Measure.WELL_CONDITIONED, figure=figure, limit=limit)


def well_conditioned(expected: Expected, honest: Iterable[Moved | None]) -> WellConditioned | None:
    """Return the part of an output that honest outputs move least; None where it has few elements, or nothing can be told.

    An element that other last bits of the operands leave as it is depends on whole numbers alone, and nothing is known of it.

    Args:
        expected: the output in float64.
        honest: what it might be in honest kernels, each of the same shape; None where nothing can be told.
    """
    flat = expected.values.reshape(-1)
    if flat.numel() < FEWEST_CONDITIONED:
        return None
    places = _looked_at(flat)
    want = flat[places]
    errors: list[torch.Tensor] = []
    is_moved = torch.zeros_like(want, dtype=torch.bool)
    for found in honest:
        if found is None:
            return None
        errors.append((found.output.detach().reshape(-1)[places].double() - want).abs_())
        if found.by_operands:
            is_moved |= errors[-1] > 0
    furthest = torch.stack(errors).amax(0).nan_to_num_(math.inf, math.inf)
    chosen = (furthest <= _edge_of(furthest)) & is_moved & torch.isfinite(furthest) & torch.isfinite(want)
    part = want[chosen]
    if len(part) < WELL_CONDITIONED_SHARE * FEWEST_CONDITIONED:
        return None
    scale = _scale_of(part, expected)
    own = max(float(torch.linalg.vector_norm(each[chosen])) for each in errors) / scale
    return WellConditioned(places, chosen, part, scale, own)


def least_error(output: torch.Tensor, expected: Expected) -> float:
    """Return the error of the fifteen sixteenths of an output that are least off: no part of it has less by much."""
    flat = expected.values.reshape(-1)
    places = _looked_at(flat)
    want = flat[places]
    apart = (output.detach().reshape(-1)[places].double() - want).abs_().nan_to_num_(math.inf, math.inf)
    chosen = (apart <= _edge_of(apart)) & torch.isfinite(want)
    return float(torch.linalg.vector_norm(apart[chosen])) / _scale_of(want[chosen], expected)


def _looked_at(flat: torch.Tensor) -> slice:
    """Return places of a flat output at even distances, from a secret one on: all of a small one."""
    stride = math.ceil(flat.numel() / _MOST_ELEMENTS)
    return slice(secrets.randbelow(max(stride, 1)), None, max(stride, 1))


def _edge_of(sizes: torch.Tensor) -> torch.Tensor:
    """Return the largest of the fifteen sixteenths that are smallest."""
    return sizes.kthvalue(math.ceil(WELL_CONDITIONED_SHARE * len(sizes))).values


def _scale_of(part: torch.Tensor, expected: Expected) -> float:
    """Return what the norm of a part's errors is divided by, as the whole output's is."""
    norm = float(torch.linalg.vector_norm(part))
    spread = float(torch.linalg.vector_norm(part - part.mean()))
    least = expected.least_spread * norm / expected.norm if expected.norm else 0.0
    return max(spread, least) or norm or 1.0
