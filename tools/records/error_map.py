"""Where an output is wrong and in what way: the facts behind the sentence that a person or a model repairs a kernel by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ridgeline.tools.records.codec import Record


class Measure(StrEnum):
    """Figures of a comparison that have a limit."""

    OUTPUT = "output"  # |o - o64| / |o64 - mean(o64)|
    ROW = "row"  # the same of one row
    ELEMENT = "element"  # |o - o64| / (rms(o64) + |o64|) of one element
    CRFM = "crfm"  # |o - o64| / (max(1, rms) + |o64|) of one element


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess(Record):
    """One figure beyond its limit."""

    measure: Measure
    figure: float
    limit: float

    @property
    def factor(self) -> float:
        """Return figure / limit; a limit of 0 counts as the smallest number."""
        return min(self.figure / max(self.limit, 1e-300), 1e300)


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
