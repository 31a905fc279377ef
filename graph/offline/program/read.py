"""Reads a reference's JSON graph as a row program, or says in a sentence what is not covered.

Covered: elementwise operations and reductions over the last dimensions, whose extents agree on what a row is. Operands
may be broadcast, expanded, transposed or sliced, as long as a row's elements lie at one constant stride.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ridgeline.graph.offline.program import layout
from ridgeline.graph.offline.program.elementwise import as_bool, rule_for
from ridgeline.graph.offline.program.graph import (
    FAMILY_OPERATIONS,
    VIEWS,
    Graph,
    Node,
    Shape,
    arguments_of,
    graph_of,
    is_contiguous_argument,
    number,
)
from ridgeline.graph.offline.program.grid import NORMS, REDUCING, grid_of, is_reducing
from ridgeline.graph.offline.program.ir import Builder, Load, NotCovered, Output, RowProgram, Space, Value
from ridgeline.graph.offline.program.layout import NodeView
from ridgeline.graph.offline.program.reductions import COMPOSED, normalized
from ridgeline.tools.records.dtypes import contiguous_strides
from ridgeline.tools.records.graph_ops import base_name
from ridgeline.tools.records.problem import ArgSpec, Description
from ridgeline.tools.records.vocabulary import ArgKind, Role

SUPPORTED_DTYPES = ("float32", "float16", "bfloat16", "bool", "int64", "int32", "uint8")
SPLITS = ("split_with_sizes", "split")
CONSTANTS = ("zeros_like", "ones_like", "zeros", "ones")
FILLS = {"full": 1, "full_like": 1, "scalar_tensor": 0}


def read_program(description: Description) -> RowProgram:
    """Return the row program of a described reference.

    Raises:
        NotCovered: an operation or a layout is outside the family.
    """
    return Reader.of(graph_of(description), description).program()


def _unknown_operation(graph: Graph) -> str:
    """Return the first operation of a graph that no family knows, "" where there is none."""
    known = {*FILLS, *CONSTANTS, *SPLITS, *VIEWS, *COMPOSED, *NORMS, *REDUCING, *FAMILY_OPERATIONS, "getitem"}
    operations = (str(node["op"]) for node in graph["nodes"] if str(node["op"]).startswith("aten."))
    return next((op for op in operations if base_name(op) not in known and rule_for(base_name(op)) is None), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A node whose elements another part of the kernel computes, and the function that makes its value."""

    node: str
    value: Callable[[Reader, Node], Value]


@dataclass(slots=True)
class Reader:
    """Reads nodes of a graph as values over one grid of rows and columns."""

    nodes: dict[str, Node]
    outputs: list[str]
    arguments: dict[str, ArgSpec]  # placeholder name -> argument
    results: tuple[ArgSpec, ...]
    builder: Builder
    views: dict[str, NodeView] = field(default_factory=dict)
    made: dict[tuple[str, Shape, Shape], Value] = field(default_factory=dict)
    leaf: Leaf | None = None

    @classmethod
    def of(cls, graph: Graph, description: Description, builder: Builder | None = None) -> Reader:
        """Return a reader over the given builder's grid, else over the one that the graph's reductions imply."""
        nodes = {n["name"]: n for n in graph["nodes"]}
        arguments = arguments_of(graph, description)
        results = description.signature.with_role(Role.OUTPUT)
        if len(results) != len(graph["outputs"]):
            raise NotCovered("outputs that are not tensors")
        if builder is None:
            try:
                rows, cols = grid_of(nodes, graph["outputs"])
            except NotCovered:
                if unknown := _unknown_operation(graph):  # says more than how the reductions around it differ
                    raise NotCovered(unknown) from None
                raise
            builder = Builder(rows=rows, cols=cols)
        return cls(nodes, graph["outputs"], arguments, results, builder)

    def partial(self, root: str) -> RowProgram:
        """Return the program of one node, written as the only output."""
        view, spec = self._view(root), self.results[0]
        output = Output(argument=spec.name, dtype=spec.dtype, value=self._read(view, view.shape))
        return RowProgram(rows=self.builder.rows, cols=self.builder.cols, outputs=(output,), builder=self.builder)

    def program(self) -> RowProgram:
        """Return the program of all outputs."""
        outputs = []
        for name, spec in zip(self.outputs, self.results, strict=True):
            view = self._view(name)
            value = self._read(view, view.shape)
            is_row = math.prod(view.shape) == self.builder.rows and not value.space & Space.COL
            if math.prod(view.shape) != self.builder.rows * self.builder.cols and not is_row:
                raise NotCovered(f"an output of shape {view.shape} beside rows of {self.builder.cols}")
            if not is_contiguous_argument(spec):
                raise NotCovered("an output that is not contiguous")
            outputs.append(Output(argument=spec.name, dtype=spec.dtype, value=value))
        return RowProgram(rows=self.builder.rows, cols=self.builder.cols, outputs=tuple(outputs), builder=self.builder)

    def _view(self, name: str) -> NodeView:
        if name not in self.views:
            node = self.nodes[name]
            shape = tuple(node["shape"])
            made = None
            if base_name(node["op"]) in VIEWS:
                source = self._view(node["args"][0]["node"])
                made = layout.apply_view(base_name(node["op"]), source, node["args"][1:], shape)
            if node["op"] == "getitem" and base_name(self._source(node)["op"]) in SPLITS:
                made = self._part(node)
            strides = tuple(node["strides"]) if node["op"] == "placeholder" else contiguous_strides(shape)
            self.views[name] = made or NodeView(base=name, shape=shape, strides=strides)
        return self.views[name]

    def _source(self, node: Node) -> Node:
        return self.nodes[node["args"][0]["node"]]

    def _part(self, node: Node) -> NodeView:
        """Return one piece of a split as a slice."""
        split = self._source(node)
        view, sizes = self._view(split["args"][0]["node"]), split["args"][1]
        dim = int(split["args"][2] if len(split["args"]) > 2 else split["kwargs"].get("dim", 0))
        index = int(node["args"][1])
        start = index * sizes if isinstance(sizes, int) else sum(sizes[:index])
        made = layout.apply_view("slice", view, [dim, start], tuple(node["shape"]))
        return made or view

    def _read(self, view: NodeView, shape: Shape) -> Value:
        """Return the value of a view's element at each index of `shape`."""
        node = self.nodes[view.base]
        strides = view.broadcast(shape)
        if node["op"] == "placeholder":
            return self._read_argument(view, shape, strides)
        base_shape = tuple(node["shape"])
        if math.prod(base_shape) == 1 or self._is_fixed(node):
            return self._compute_fixed(view, node, shape, strides)
        if view.offset:
            raise NotCovered("a slice of a computed tensor")
        if layout.is_contiguous(shape, strides) and math.prod(shape) == math.prod(base_shape):
            return self._compute(node, base_shape, contiguous_strides(base_shape))
        return self._compute(node, shape, strides)

    def _is_fixed(self, node: Node) -> bool:
        """Tell whether the node's values are made a whole row at a time, not element by element."""
        return is_reducing(node) or node["op"] == "getitem"

    def _compute_fixed(self, view: NodeView, node: Node, shape: Shape, strides: Shape) -> Value:
        base_shape = tuple(node["shape"])
        value = self._compute(node, base_shape, contiguous_strides(base_shape))
        total, rows = math.prod(shape), self.builder.rows
        if value.space is Space.CONST or (math.prod(base_shape) == 1 and rows == 1):
            return value
        if view.offset:
            raise NotCovered("a slice of a computed tensor")
        if value.space & Space.COL:
            if not layout.is_contiguous(shape, strides):
                raise NotCovered("a permuted intermediate result")
            return value
        outer = len(shape) if total == rows else self._row_dimensions(shape)
        leading, trailing = shape[:outer], strides[outer:]
        if any(trailing) or not layout.is_contiguous(leading, strides[:outer]):
            raise NotCovered("a per-row result broadcast along other dimensions than the row's")
        return value

    def _read_argument(self, view: NodeView, shape: Shape, strides: Shape) -> Value:
        spec = self.arguments.get(view.base)
        if spec is None:
            raise NotCovered("a constant tensor of more than a few elements")
        if spec.kind is ArgKind.SCALAR:
            return self.builder.scalar(spec.name, {"bool": "bool", "int64": "int64_t"}.get(spec.dtype, "float"))
        if spec.dtype not in SUPPORTED_DTYPES:
            raise NotCovered(f"{spec.dtype} tensors")
        terms, col_stride = self._address(shape, strides)
        return self.builder.load(
            Load(argument=spec.name, dtype=spec.dtype, offset=view.offset, row_terms=terms, col_stride=col_stride)
        )

    def _address(self, shape: Shape, strides: Shape) -> tuple[tuple[tuple[int, int, int], ...], int]:
        rows, cols = self.builder.rows, self.builder.cols
        total = math.prod(shape)
        if not any(strides):
            return (), 0
        if total == rows * cols and layout.is_contiguous(shape, strides):
            return ((1, rows, cols),), 1
        outer = len(shape) if total == rows else self._row_dimensions(shape)
        inner = [(n, s) for n, s in layout.collapse(shape[outer:], strides[outer:])]
        if len(inner) > 1:
            raise NotCovered("a row whose elements do not lie at one stride")
        terms, divisor = [], 1
        for size, stride in reversed(layout.collapse(shape[:outer], strides[:outer])):
            if stride:
                terms.append((divisor, size, stride))
            divisor *= size
        return tuple(terms), inner[0][1] if inner else 0

    def _row_dimensions(self, shape: Shape) -> int:
        """Return the number of leading dimensions that enumerate rows."""
        for outer in range(len(shape) + 1):
            if math.prod(shape[:outer]) == self.builder.rows and math.prod(shape[outer:]) == self.builder.cols:
                return outer
        raise NotCovered(f"shape {shape} does not fall into {self.builder.rows} rows of {self.builder.cols}")

    def _compute(self, node: Node, shape: Shape, strides: Shape) -> Value:
        key = (node["name"], shape, strides)
        if key not in self.made:
            self.made[key] = self._make(node, shape, strides)
        return self.made[key]

    def _make(self, node: Node, shape: Shape, strides: Shape) -> Value:
        operation = base_name(node["op"])
        if self.leaf is not None and node["name"] == self.leaf.node:
            return self._leaf_value(self.leaf, node, shape, strides)
        if operation == "constant":
            return self._constant(node)
        if operation in FILLS:
            return self.builder.literal(number(node["args"][FILLS[operation]]))
        if operation in CONSTANTS:
            return self.builder.literal(float(operation.startswith("ones")))
        if operation == "getitem":
            return normalized(self, self.nodes[node["args"][0]["node"]])[int(node["args"][1])]
        if operation in COMPOSED:
            return COMPOSED[operation](self, node)
        return self._elementwise(operation, node, shape, strides)

    def _leaf_value(self, leaf: Leaf, node: Node, shape: Shape, strides: Shape) -> Value:
        is_whole = math.prod(shape) == self.builder.rows * self.builder.cols
        if not is_whole or not layout.is_contiguous(shape, strides):
            raise NotCovered("a contraction's result used in another order than its own")
        return leaf.value(self, node)

    def _constant(self, node: Node) -> Value:
        value = node["args"][0]
        while isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is None or isinstance(value, list):
            raise NotCovered("a constant tensor of several elements")
        return self.builder.literal(number(value))

    def _elementwise(self, operation: str, node: Node, shape: Shape, strides: Shape) -> Value:
        rule = rule_for(operation)
        if rule is None:
            raise NotCovered(str(node["op"]))
        source = tuple(node["shape"])
        dims = layout.dimension_map(source, shape, strides)
        args: list[Any] = [self._operand(a, source, shape, dims) for a in node["args"]]
        keywords = {
            k: self._operand(v, source, shape, dims) if isinstance(v, dict) else v for k, v in node["kwargs"].items()
        }
        present = [a for a in args if a is not None]
        if operation == "clamp" and args[1] is None:
            return rule_for("clamp_max")(self.builder, [args[0], args[2]], {})  # type: ignore[misc]
        value = rule(self.builder, present, keywords)
        return as_bool(self.builder, value) if node["dtype"] == "bool" else value

    def _operand(self, argument: Any, source: Shape, shape: Shape, dims: list[int | None]) -> Value | None:
        if argument is None:
            return None
        if not isinstance(argument, dict):
            return self.builder.literal(number(argument))
        view = self._view(argument["node"])
        over_source = view.broadcast(source)
        strides = tuple(0 if d is None else over_source[d] for d in dims)
        return self._read(NodeView(base=view.base, shape=shape, strides=strides, offset=view.offset), shape)

    def operand(self, node: Node, index: int) -> Value:
        """Return a reduction's operand over its own shape."""
        view = self._view(node["args"][index]["node"])
        return self._read(view, view.shape)

    def over(self, node: Node, index: int, shape: Shape) -> Value | None:
        """Return an optional operand broadcast to `shape`."""
        if index >= len(node["args"]) or node["args"][index] is None:
            return None
        return self._read(self._view(node["args"][index]["node"]), shape)

    def shape_of(self, node: Node, index: int) -> Shape:
        """Return the shape of one operand."""
        return tuple(self.nodes[node["args"][index]["node"]]["shape"])
