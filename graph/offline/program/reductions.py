"""Covered reductions as operations of the row program; an operand lies over rows and columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from ridgeline.graph.offline.program.elementwise import as_bool, as_float
from ridgeline.graph.offline.program.graph import Node, number
from ridgeline.graph.offline.program.ir import Builder, NotCovered, Value

FLOAT_EPS = 2.0**-23
"""torch.finfo(torch.float32).eps: what rms_norm without an eps adds to the mean of the squares, which it takes in float."""


class Operands(Protocol):
    """Access to the operands of the node that is built."""

    @property
    def builder(self) -> Builder:
        """Return the builder of the row program."""
        ...

    def operand(self, node: Node, index: int) -> Value:
        """Return one operand over its own shape."""
        ...

    def over(self, node: Node, index: int, shape: tuple[int, ...]) -> Value | None:
        """Return an optional operand broadcast to `shape`."""
        ...

    def shape_of(self, node: Node, index: int) -> tuple[int, ...]:
        """Return the shape of one operand."""
        ...


def _layer_norm(reader: Operands, node: Node) -> list[Value]:
    builder, shape = reader.builder, reader.shape_of(node, 0)
    x = as_float(builder, reader.operand(node, 0))
    mean = builder.mean(x)
    shifted = builder.apply("add", builder.variance(x, 0), builder.literal(number(node["args"][4])))
    scale = builder.apply("rsqrt", shifted)
    result = builder.apply("mul", builder.apply("sub", x, mean), scale)
    for index, op in ((2, "mul"), (3, "add")):
        affine = reader.over(node, index, shape)
        result = result if affine is None else builder.apply(op, result, affine)
    return [result, mean, scale]


def _rms_norm(reader: Operands, node: Node) -> list[Value]:
    builder, shape = reader.builder, reader.shape_of(node, 0)
    x = as_float(builder, reader.operand(node, 0))
    given = node["args"][3] if len(node["args"]) > 3 else None
    epsilon = builder.literal(FLOAT_EPS if given is None else number(given))
    scale = builder.apply("rsqrt", builder.apply("add", builder.mean(builder.apply("square", x)), epsilon))
    result = builder.apply("mul", x, scale)
    weight = reader.over(node, 2, shape)
    return [result if weight is None else builder.apply("mul", result, weight), scale]


def _softmax_parts(reader: Operands, node: Node) -> tuple[Value, Value, Value]:
    builder = reader.builder
    x = as_float(builder, reader.operand(node, 0))
    shifted = builder.apply("sub", x, builder.reduce("max", x))
    exponential = builder.apply("exp", shifted)
    return shifted, exponential, builder.reduce("sum", exponential)


def _softmax(reader: Operands, node: Node) -> Value:
    _, exponential, total = _softmax_parts(reader, node)
    return reader.builder.apply("div", exponential, total)


def _log_softmax(reader: Operands, node: Node) -> Value:
    shifted, _, total = _softmax_parts(reader, node)
    return reader.builder.apply("sub", shifted, reader.builder.apply("log", total))


def _plain(op: str) -> Callable[[Operands, Node], Value]:
    def build(reader: Operands, node: Node) -> Value:
        return reader.builder.reduce(op, reader.operand(node, 0))

    return build


def _truth(op: str) -> Callable[[Operands, Node], Value]:
    def build(reader: Operands, node: Node) -> Value:
        builder = reader.builder
        truth = as_float(builder, as_bool(builder, reader.operand(node, 0)))
        return builder.apply("ne", builder.reduce(op, truth), builder.literal(0.0), ctype="bool")

    return build


def _mean(reader: Operands, node: Node) -> Value:
    return reader.builder.mean(as_float(reader.builder, reader.operand(node, 0)))


def _var(reader: Operands, node: Node) -> Value:
    correction = node["kwargs"].get("correction", 1)
    x = as_float(reader.builder, reader.operand(node, 0))
    return reader.builder.variance(x, 1.0 if correction is None else number(correction))


def _vector_norm(reader: Operands, node: Node) -> Value:
    builder = reader.builder
    x = as_float(builder, reader.operand(node, 0))
    order = number(node["args"][1] if len(node["args"]) > 1 else 2)
    if order == 2:
        return builder.apply("sqrt", builder.reduce("sum", builder.apply("square", x)))
    size = builder.apply("abs", x)
    if order == 1:
        return builder.reduce("sum", size)
    if math.isinf(order):
        return builder.reduce("max" if order > 0 else "min", size)
    raise NotCovered(f"vector norm of order {order}")


def _logsumexp(reader: Operands, node: Node) -> Value:
    builder = reader.builder
    x = as_float(builder, reader.operand(node, 0))
    largest = builder.reduce("max", x)
    is_infinite = builder.apply("isinf", largest, ctype="bool")
    shift = builder.apply("where", is_infinite, builder.literal(0.0), largest)
    total = builder.reduce("sum", builder.apply("exp", builder.apply("sub", x, shift)))
    return builder.apply("add", builder.apply("log", total), shift)


COMPOSED: dict[str, Callable[[Operands, Node], Value]] = {
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "sum": _plain("sum"),
    "amax": _plain("max"),
    "amin": _plain("min"),
    "prod": _plain("prod"),
    "any": _truth("max"),
    "all": _truth("min"),
    "mean": _mean,
    "var": _var,
    "linalg_vector_norm": _vector_norm,
    "logsumexp": _logsumexp,
}


def normalized(reader: Operands, node: Node) -> list[Value]:
    """Return the parts of a normalization that returns several tensors."""
    parts = {"aten.native_layer_norm.default": _layer_norm, "aten._fused_rms_norm.default": _rms_norm}
    if node["op"] not in parts:
        raise NotCovered(str(node["op"]))
    return parts[str(node["op"])](reader, node)
