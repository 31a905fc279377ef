"""The row program: values over a grid of `rows` x `cols`, one object for equal values.

A value lives in the smallest space that holds it: one constant, one for each column (a parameter), one for each row (a
reduction's result), or the full grid. Values are hash-consed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum


class NotCovered(Exception):
    """The reference is outside a family; the message names the operation, the layout or the target."""


class NotOfFamily(NotCovered):
    """The reference does not have the operation that the family is named for, so the family has no say in why not."""


class Space(IntEnum):
    """The dimensions that a value varies over."""

    CONST = 0
    COL = 1
    ROW = 2
    FULL = 3


REDUCTIONS = ("sum", "max", "min", "prod", "m2")
"""m2 is the sum of squared distances from the mean; its arguments are (value, mean)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The place of an argument's element: `offset + sum(row // divisor % size * stride) + col * col_stride`."""

    argument: str  # Signature name
    dtype: str
    offset: int = 0
    row_terms: tuple[tuple[int, int, int], ...] = ()  # (divisor, size, stride), strides in elements
    col_stride: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One node of the computation. Compared by identity: the builder makes equal nodes one."""

    id: int
    op: str  # "load", "scalar", "literal", "accumulator", a reduction, or an operation of text/arithmetic.py
    args: tuple[Value, ...]
    space: Space
    ctype: str  # "float", "int64_t" or "bool"
    load: Load | None = None
    literal: float | str = 0.0  # a literal's value, a scalar argument's name

    @property
    def is_leaf(self) -> bool:
        """Tell whether reading the value again costs no arithmetic."""
        return not self.args


@dataclass(slots=True)
class Builder:
    """Makes values for a grid of `rows` x `cols`."""

    rows: int
    cols: int
    _known: dict[tuple[object, ...], Value] = field(default_factory=dict)

    def literal(self, value: float, ctype: str = "float") -> Value:
        """Return a constant."""
        key = repr(float(value))
        return self._make(("literal", key, ctype), "literal", (), Space.CONST, ctype, literal=float(value))

    def scalar(self, argument: str, ctype: str) -> Value:
        """Return a scalar argument of `run`."""
        return self._make(("scalar", argument), "scalar", (), Space.CONST, ctype, literal=argument)

    def accumulator(self) -> Value:
        """Return the element that another part of the kernel computes: a contraction's sum."""
        return self._make(("accumulator",), "accumulator", (), Space.FULL, "float")

    def load(self, load: Load) -> Value:
        """Return an element of a tensor argument."""
        space = Space((Space.ROW if load.row_terms else 0) + (Space.COL if load.col_stride else 0))
        ctype = {"bool": "bool", "int64": "int64_t", "int32": "int64_t", "uint8": "int64_t"}.get(load.dtype, "float")
        return self._make(("load", load), "load", (), space, ctype, load=load)

    def apply(self, op: str, *args: Value, ctype: str = "float") -> Value:
        """Return an elementwise operation of values."""
        folded = _fold(op, args)
        if folded is not None:
            return self.literal(folded, ctype)
        rows = any(a.space & Space.ROW for a in args)
        cols = any(a.space & Space.COL for a in args)
        space = Space((Space.ROW if rows else 0) + (Space.COL if cols else 0))
        return self._make((op, ctype, *(a.id for a in args)), op, args, space, ctype)

    def reduce(self, op: str, value: Value, *extra: Value) -> Value:
        """Return a reduction of a value over the columns."""
        args = (value, *extra)
        ctype = "float" if value.ctype == "bool" else value.ctype
        return self._make((op, *(a.id for a in args)), op, args, Space.ROW, ctype)

    def mean(self, value: Value) -> Value:
        """Return the mean over the columns."""
        return self.apply("mul", self.reduce("sum", value), self.literal(1.0 / self.cols))

    def variance(self, value: Value, correction: float) -> Value:
        """Return the variance over the columns, divided by `cols - correction`."""
        divisor = self.cols - correction
        if divisor <= 0:
            raise NotCovered("var: fewer columns than its correction")
        return self.apply("mul", self.reduce("m2", value, self.mean(value)), self.literal(1.0 / divisor))

    def _make(
        self,
        key: tuple[object, ...],
        op: str,
        args: tuple[Value, ...],
        space: Space,
        ctype: str,
        *,
        load: Load | None = None,
        literal: float | str = 0.0,
    ) -> Value:
        if key not in self._known:
            self._known[key] = Value(len(self._known), op, args, space, ctype, load, literal)
        return self._known[key]


FOLDABLE: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
}


def _fold(op: str, args: tuple[Value, ...]) -> float | None:
    if op not in FOLDABLE or not all(a.op == "literal" for a in args):
        return None
    result = float(FOLDABLE[op](*(float(a.literal) for a in args)))
    return None if math.isnan(result) else result


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output of the reference: a value written for each element or for each row."""

    argument: str
    dtype: str
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class RowProgram:
    """A whole row-wise computation."""

    rows: int
    cols: int
    outputs: tuple[Output, ...]
    builder: Builder

    def values(self) -> list[Value]:
        """Return every value that an output needs, each after its arguments."""
        ordered: dict[int, Value] = {}
        for output in self.outputs:
            collect(output.value, ordered)
        return list(ordered.values())


def collect(root: Value, into: dict[int, Value]) -> None:
    """Add `root` and the values below it to `into`, arguments first (no recursion: chains may be long)."""
    stack: list[tuple[Value, bool]] = [(root, False)]
    while stack:
        value, is_ready = stack.pop()
        if value.id in into:
            continue
        if is_ready:
            into[value.id] = value
            continue
        stack.append((value, True))
        stack.extend((a, False) for a in reversed(value.args) if a.id not in into)
