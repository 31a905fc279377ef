"""The elementwise work after a contraction, read from the graph and written as one struct for both devices.

The contraction's sums lie over a grid of rows x columns in row-major order. The emitted text is a struct of the
pointers and scalars that the epilogue reads; called with a sum, its row and its column, it returns the output's element
in fp32::

    struct Epilogue {
      const float* bias_data;
      float operator()(float accumulator, int64_t row, int64_t col) const { … }
    };
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ridgeline.graph.offline.program.graph import Node
from ridgeline.graph.offline.program.ir import REDUCTIONS, Builder, Load, NotCovered, Output, RowProgram, Value
from ridgeline.graph.offline.program.read import Leaf, Reader
from ridgeline.graph.offline.text import arithmetic
from ridgeline.graph.offline.text.addresses import element_offset
from ridgeline.graph.offline.text.sections import needed_sections
from ridgeline.tools.build.header import C_TYPES
from ridgeline.tools.records.problem import Description

SCALAR_TYPES = {"float": "double", "int64_t": "int64_t", "bool": "bool"}
PER_OPERATION = {"exp": 8, "log": 8, "erf": 16, "gelu": 16, "sigmoid": 10, "silu": 12, "tanh": 12, "div": 4, "pow": 16}
"""Instructions for one element, about; other operations cost one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epilogue:
    """An output as a function of the contraction's sums and of loads beside them."""

    program: RowProgram

    @property
    def output(self) -> Output:
        """Return the one output; its value is a function of "accumulator"."""
        return self.program.outputs[0]

    @property
    def is_plain(self) -> bool:
        """Tell whether the sums are the output."""
        return self.output.value.op == "accumulator"

    @property
    def has_transcendental(self) -> bool:
        """Tell whether the epilogue calls a function that has an inline polynomial."""
        return any(v.op in arithmetic.INLINE for v in self.program.values())

    @property
    def cost(self) -> int:
        """Return about how many instructions an element costs."""
        return sum(PER_OPERATION.get(v.op, 1) for v in self.program.values() if v.args)

    def loads(self) -> list[Load]:
        """Return the epilogue's loads, in order."""
        return [v.load for v in self.program.values() if v.load is not None]


def read_epilogue(
    description: Description,
    leaf: str,
    *,
    rows: int,
    cols: int,
    made: Callable[[Reader, Node, Value], Value] | None = None,
    root: str = "",
) -> Epilogue:
    """Return the elementwise epilogue of the node named `leaf`, whose sums lie over `rows` x `cols`.

    Args:
        description: the reference.
        leaf: the contraction's node.
        rows: leading extents of the node's shape, multiplied (a convolution: images x channels).
        cols: trailing extents, multiplied (a convolution: height x width).
        made: adds the node's own terms (addmm's bias) to a sum, given the reader, the node and the sum.
        root: the last node of the epilogue, when the family itself does the work after it; else the output.

    Raises:
        NotCovered: the work after the node is not elementwise over the grid.
    """

    def value(reader: Reader, node: Node) -> Value:
        accumulator = reader.builder.accumulator()
        return accumulator if made is None else made(reader, node, accumulator)

    graph = description.reference_graph or {}
    if len(graph["outputs"]) != 1:
        raise NotCovered("several outputs of a contraction")
    reader = Reader.of(graph, description, Builder(rows=rows, cols=cols))
    reader.leaf = Leaf(node=leaf, value=value)
    program = reader.partial(root) if root else reader.program()
    if any(v.op in REDUCTIONS for v in program.values()):
        raise NotCovered("a reduction beside a contraction")
    if not any(v.op == "accumulator" for v in program.values()):
        raise NotCovered("a contraction that the output does not use element by element")
    return Epilogue(program=program)


def epilogue_text(epilogue: Epilogue, *, cuda: bool, inline: bool = False) -> str:
    """Return the definition of `struct Epilogue`, after the inline polynomials that it calls.

    `inline` takes polynomials in place of library functions; they are C++ for the CPU only.
    """
    values = [v for v in epilogue.program.values() if v.op != "literal"]
    members = [f"  {ctype} {name};" for ctype, name in _members(epilogue)]
    index = "int32_t" if cuda and epilogue.program.rows * epilogue.program.cols < 1 << 31 else "int64_t"
    qualifier = "__device__ __forceinline__ " if cuda else ""
    body = [
        f"    const {arithmetic.register_type(v.ctype)} v{v.id} = {_expression(v, epilogue, inline=inline)};"
        for v in values
    ]
    if any(v.op == "literal" and math.isinf(float(v.literal)) for v in epilogue.program.values()):
        body.insert(0, "    const float infinite = __builtin_inff();")
    head = f"  {qualifier}float operator()(float accumulator, {_used('row', body, index)}, {_used('col', body, index)})"
    sections = needed_sections([n for n in arithmetic.INLINE if inline and f"rl_{n}(" in "\n".join(body)])
    result = f"    return static_cast<float>({_name(epilogue.output.value)});"
    text = ["struct Epilogue {", *members, f"{head} const {{", *body, result, "  }", "};"]
    return "\n".join([*([sections] if sections else []), *text]) + "\n"


def epilogue_made(epilogue: Epilogue) -> str:
    """Return the expression that makes the struct inside `run`, whose parameters are called NAME_data, NAME_value."""
    return f"Epilogue{{{', '.join(name for _, name in _members(epilogue))}}}"


def _members(epilogue: Epilogue) -> list[tuple[str, str]]:
    """Return (type, name) of each argument that the epilogue reads."""
    found: dict[str, str] = {}
    for value in epilogue.program.values():
        if value.load is not None:
            found[f"{value.load.argument}_data"] = f"const {C_TYPES[value.load.dtype]}*"
        if value.op == "scalar":
            found[f"{value.literal}_value"] = SCALAR_TYPES[value.ctype]
    return [(ctype, name) for name, ctype in found.items()]


def _used(name: str, body: list[str], ctype: str) -> str:
    """Return a parameter, without a name when the body does not read it."""
    is_read = any(word == name for line in body for word in line.replace("[", " ").replace("]", " ").split())
    return f"{ctype} {name}" if is_read else ctype


def _expression(value: Value, epilogue: Epilogue, *, inline: bool) -> str:
    if value.op == "accumulator":
        return "accumulator"
    if value.op == "scalar":
        return f"static_cast<{arithmetic.register_type(value.ctype)}>({value.literal}_value)"
    if value.load is not None:
        text = f"{value.load.argument}_data[{element_offset(value.load, epilogue.program.rows)}]"
        return (
            text if value.load.dtype == "float32" else f"static_cast<{arithmetic.register_type(value.ctype)}>({text})"
        )
    return arithmetic.expression(value.op, [_name(a) for a in value.args], inline=inline)


def _name(value: Value) -> str:
    return arithmetic.literal(float(value.literal), value.ctype) if value.op == "literal" else f"v{value.id}"
