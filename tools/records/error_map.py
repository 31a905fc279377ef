"""The facts behind a verdict's sentence: how near an output is to its limits, where it is wrong and in what way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ridgeline.tools.records.codec import Record


class Measure(StrEnum):
    """Figures of a comparison that have a limit."""

    OUTPUT = "output"  # |o - o64| / |o64 - mean(o64)|
    WELL_CONDITIONED = "well_conditioned"  # the same of the elements that other last bits move least
    ROW = "row"  # the same of one row
    SMALL_ROW = "small_row"  # |o - o64| / |o64| of a row that is too small for the limit of rows
    ELEMENT = "element"  # |o - o64| / (rms(o64) + |o64|) of one element
    CRFM = "crfm"  # |o - o64| / (max(1, rms) + |o64|) of one element
    REPEAT = "repeat"  # |o' - o| / |o - mean(o)| of two runs on the same inputs


FIGURE_WORDS: Mapping[Measure, str] = {
    Measure.OUTPUT: "error",
    Measure.WELL_CONDITIONED: "the error of the well-conditioned elements",
    Measure.ROW: "a row's error",
    Measure.SMALL_ROW: "a small row's error",
    Measure.ELEMENT: "an element's error",
    Measure.CRFM: "an element's error by the 1e-2 rule",
    Measure.REPEAT: "a second run's difference",
}


UNBOUNDED = 1e300
"""The figure of an error over nothing: JSON has no infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse(Record):
    """One figure of a comparison beside its limit."""

    measure: Measure
    figure: float
    limit: float

    @property
    def factor(self) -> float:
        """Return figure / limit, more than 1 beyond the limit; a limit of 0 counts as the smallest number."""
        if math.isnan(self.figure):
            return UNBOUNDED
        return min(self.figure / max(self.limit, 1 / UNBOUNDED), UNBOUNDED)

    @property
    def is_within(self) -> bool:
        """Say whether the limit holds; it does for no figure that is no number."""
        return self.figure <= self.limit

    def in_words(self) -> str:
        """Return "a row's error 3e-4, gate 4e-5 (7.5 x)"; no factor over a gate of 0 or where it says nothing."""
        if self.figure >= UNBOUNDED:
            return f"{FIGURE_WORDS[self.measure]} beyond all bounds, gate {self.limit:.2g}"
        factor = f" ({_factor_words(self.factor)} x)" if self.limit > 0 and self.factor < 1e6 else ""
        return f"{FIGURE_WORDS[self.measure]} {self.figure:.2g}, gate {self.limit:.2g}{factor}"


def _factor_words(factor: float) -> str:
    """Return a factor with two digits, and as many more, up to six, as show that it is not 1."""
    words = "just over 1" if factor > 1 else "just under 1" if factor < 1 else "1"
    return next((text for digits in range(2, 7) if (text := f"{factor:.{digits}g}") != "1"), words)


def nearest_limit(*uses: LimitUse | None) -> LimitUse | None:
    """Return the figure that is nearest to its limit or furthest beyond it, None for none at all."""
    return max((use for use in uses if use is not None), key=lambda use: (not use.is_within, use.factor), default=None)


class Pattern(StrEnum):
    """Shapes of a set of indices along one axis."""

    ONE = "one"
    FIRST = "first"
    LAST = "last"
    RANGE = "range"
    BORDERS = "borders"  # the first and the last
    EVERY = "every"  # each `step`-th
    SOME = "some"


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisPattern(Record):
    """Indices of one axis at which wrong elements lie; an axis at all of whose indices some lie has no pattern."""

    axis: int
    size: int
    pattern: Pattern
    count: int  # of such indices
    first: int
    last: int
    step: int = 1  # of EVERY


class Relation(StrEnum):
    """Relations of the wrong values to the expected ones."""

    CONSTANT = "constant"  # they are all `value`
    RATIO = "ratio"  # they are `value` x the expected ones
    OFFSET = "offset"  # they are the expected ones + `value`
    TRANSPOSED = "transposed"  # the output's last two axes are exchanged in memory
    SHIFTED = "shifted"  # they stand `value` places further along `axis`
    OFFSET_BY_AXIS = "offset_by_axis"  # what is added depends on the index of `axis` alone
    RATIO_BY_AXIS = "ratio_by_axis"  # the factor depends on the index of `axis` alone


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMap(Record):
    """The wrong elements of one output."""

    wrong: int
    total: int
    axes: tuple[AxisPattern, ...] = ()
    relation: Relation | None = None
    value: float = 0.0
    axis: int = 0
