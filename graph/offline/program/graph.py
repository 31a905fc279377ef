"""A reference's exported graph, its nodes, and the arguments that its placeholders stand for."""

from __future__ import annotations

from typing import Any

from ridgeline.graph.offline.program import layout
from ridgeline.graph.offline.program.ir import NotCovered
from ridgeline.tools.records.dtypes import contiguous_strides
from ridgeline.tools.records.problem import ArgSpec, Description
from ridgeline.tools.records.vocabulary import ArgKind, Role

Graph = dict[str, Any]
Node = dict[str, Any]
Shape = tuple[int, ...]

RESHAPES = ("view", "reshape", "_unsafe_view")
FAMILY_OPERATIONS = ("convolution", "mm", "bmm", "addmm", "baddbmm")
"""Operations that other families than the row-wise one are named for."""
VIEWS = (*RESHAPES, "unsqueeze", "squeeze", "expand", "permute", "transpose", "t", "slice", "select")


def graph_of(description: Description) -> Graph:
    """Return a described reference's graph.

    Raises:
        NotCovered: the reference has none, or writes its inputs or buffers.
    """
    graph = description.reference_graph
    if not graph:
        raise NotCovered(description.graph_error or "the reference has no exported graph")
    if graph.get("mutations"):
        raise NotCovered("a reference that writes its inputs or buffers")
    return graph


def arguments_of(graph: Graph, description: Description) -> dict[str, ArgSpec]:
    """Return the arguments of `run` by the placeholders that stand for them.

    Raises:
        NotCovered: an input is neither a tensor nor a number.
    """
    signature = description.signature
    inputs = [a for a in signature.with_role(Role.INPUT) if a.kind is not ArgKind.NONE]
    if len(inputs) != len(graph["inputs"]):
        raise NotCovered("inputs that are not tensors or numbers")
    named = {a.name: a for a in signature.args}
    arguments = dict(zip(graph["inputs"], inputs, strict=True))
    return arguments | {node: named[name] for node, name in graph["parameters"].items() if name in named}


def is_contiguous_argument(spec: ArgSpec) -> bool:
    """Tell whether an argument's elements lie in order without gaps."""
    return layout.is_contiguous(spec.shape, spec.strides or contiguous_strides(spec.shape))


def number(literal: Any) -> float:
    """Return a literal as a float: infinities and NaN are strings in the graph."""
    return float(literal)
