"""Reads a contraction: two operands anywhere in memory, a grid of batches x rows x columns, an epilogue."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ridgeline.graph.offline.program import layout
from ridgeline.graph.offline.program.elementwise import IDENTITIES
from ridgeline.graph.offline.program.graph import RESHAPES, VIEWS, Graph, Node, arguments_of, graph_of
from ridgeline.graph.offline.program.ir import NotCovered, NotOfFamily, Value
from ridgeline.graph.offline.program.layout import NodeView
from ridgeline.graph.offline.program.read import Reader
from ridgeline.graph.offline.text.epilogue import Epilogue, read_epilogue
from ridgeline.tools.records.dtypes import element_bytes
from ridgeline.tools.records.graph_ops import base_name
from ridgeline.tools.records.problem import ArgSpec, Description
from ridgeline.tools.records.vocabulary import ArgKind

CONTRACTIONS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}
"""The position of the left operand among the arguments."""
DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """The place of a matrix's element: `offset + sum(batch // divisor % size * stride) + outer * outer_stride + k * k_stride`.

    `outer` is the row of the left operand and the column of the right one; strides count elements.
    """

    argument: str
    offset: int
    batch_terms: tuple[tuple[int, int, int], ...]  # (divisor, size, stride)
    outer_stride: int
    k_stride: int

    @property
    def is_k_major(self) -> bool:
        """Tell whether neighbours along the contraction are neighbours in memory."""
        return self.k_stride == 1

    @property
    def pitch(self) -> int:
        """Return the stride of the dimension that is not contiguous, or 0 when none is contiguous."""
        if self.k_stride == 1:
            return self.outer_stride
        return self.k_stride if self.outer_stride == 1 else 0

    def is_aligned(self, elements: int) -> bool:
        """Tell whether runs of `elements` along the contiguous dimension start at multiples of their size."""
        strides = [self.offset, self.pitch, *(t[2] for t in self.batch_terms)]
        return self.pitch > 0 and all(s % elements == 0 for s in strides)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contraction:
    """One product of matrices, for each of `batch` pairs, with its epilogue."""

    batch: int
    m: int
    n: int
    k: int
    dtype: str  # of both operands
    left: Operand
    right: Operand
    epilogue: Epilogue

    @property
    def element_bytes(self) -> int:
        """Return the size of an operand's element."""
        return element_bytes(self.dtype)

    @property
    def flops(self) -> int:
        """Return multiplications and additions."""
        return 2 * self.batch * self.m * self.n * self.k

    def is_chunked(self, operand: Operand) -> bool:
        """Tell whether 16-byte runs of an operand are aligned."""
        return operand.is_aligned(16 // self.element_bytes)


def read_contraction(description: Description) -> Contraction:
    """Return the contraction of a described reference.

    Raises:
        NotCovered: none or several contractions, an operand that is computed first, or an epilogue outside the family.
    """
    graph = graph_of(description)
    found = [n for n in graph["nodes"] if base_name(n["op"]) in CONTRACTIONS]
    if len(found) != 1:
        raise NotCovered("several products of matrices") if found else NotOfFamily("no product of matrices")
    node = found[0]
    *lead, m, n = node["shape"]
    batch = math.prod(lead)
    k = _node(graph, node["args"][CONTRACTIONS[base_name(node["op"])]]["node"])["shape"][-1]
    if min(batch, m, n, k) < 1:
        raise NotCovered("an empty product of matrices")
    epilogue = read_epilogue(description, node["name"], rows=batch * m, cols=n, made=_with_added_term)
    if epilogue.output.dtype not in DTYPES:
        raise NotCovered(f"a {epilogue.output.dtype} output")
    left, right = _operands(graph, description, node)
    return Contraction(
        batch=batch, m=m, n=n, k=k, dtype=str(node["dtype"]), left=left, right=right, epilogue=epilogue
    )  # fmt: skip


def _with_added_term(reader: Reader, node: Node, accumulator: Value) -> Value:
    """Return `beta * added + alpha * sum` of addmm and baddbmm."""
    if CONTRACTIONS[base_name(node["op"])] == 0:
        return accumulator
    builder, shape = reader.builder, tuple(node["shape"])
    beta, alpha = (float(node["kwargs"].get(name, 1)) for name in ("beta", "alpha"))
    product = accumulator if alpha == 1 else builder.apply("mul", accumulator, builder.literal(alpha))
    added = reader.over(node, 0, shape)
    if added is None or beta == 0:
        return product
    scaled = added if beta == 1 else builder.apply("mul", added, builder.literal(beta))
    return builder.apply("add", product, scaled)


def _operands(graph: Graph, description: Description, node: Node) -> tuple[Operand, Operand]:
    arguments = arguments_of(graph, description)
    first = CONTRACTIONS[base_name(node["op"])]
    views = [_matrix(graph, node["args"][first + i]["node"]) for i in (0, 1)]
    specs = [arguments.get(v.base) for v in views]
    found = []
    for view, spec, is_left in zip(views, specs, (True, False), strict=True):
        if spec is None or spec.kind is ArgKind.SCALAR:
            raise NotCovered("an operand that is a constant")
        if spec.dtype not in DTYPES or spec.dtype != node["dtype"]:
            raise NotCovered(f"a product of {spec.dtype} operands")
        found.append(_operand(view, spec, is_left=is_left))
    return found[0], found[1]


def _operand(view: NodeView, spec: ArgSpec, *, is_left: bool) -> Operand:
    *lead, first, second = (0 if n == 1 else s for n, s in zip(view.shape, view.strides, strict=True))
    outer, k = (first, second) if is_left else (second, first)
    outer_size, k_size = (view.shape[-2], view.shape[-1]) if is_left else (view.shape[-1], view.shape[-2])
    # A dimension of size 1 has no stride of its own; as a contiguous one it fits every way of loading.
    if k_size == 1 and outer != 1:
        k = 1
    if outer_size == 1 and k != 1:
        outer = 1
    terms, divisor = [], 1
    for size, stride in reversed(layout.collapse(view.shape[:-2], tuple(lead))):
        if stride:
            terms.append((divisor, size, stride))
        divisor *= size
    return Operand(
        argument=spec.name, offset=view.offset, batch_terms=tuple(terms), outer_stride=outer, k_stride=k
    )  # fmt: skip


def _matrix(graph: Graph, name: str) -> NodeView:
    """Return an operand as a view of an argument; its leading dimensions may stay apart where no stride joins them."""
    node = _node(graph, name)
    operation, shape = base_name(node["op"]), tuple(node["shape"])
    if operation == "placeholder":
        return NodeView(base=name, shape=shape, strides=tuple(node["strides"]))
    if operation in IDENTITIES.split():
        return _matrix(graph, node["args"][0]["node"])
    if operation not in VIEWS:
        raise NotCovered(f"an operand of the product that is computed first: {node['op']}")
    source = _matrix(graph, node["args"][0]["node"])
    is_batch_only = shape[-2:] == source.shape[-2:] and math.prod(shape) == math.prod(source.shape)
    if operation in RESHAPES and is_batch_only:
        return source
    if len(source.shape) != len(_node(graph, node["args"][0]["node"])["shape"]):
        raise NotCovered("an operand whose batches do not lie at one stride")
    view = layout.apply_view(operation, source, node["args"][1:], shape)
    return view or source


def _node(graph: Graph, name: str) -> Node:
    found: Node = next(n for n in graph["nodes"] if n["name"] == name)
    return found
