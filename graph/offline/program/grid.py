"""The grid of a graph: the rows and columns that its reductions over the last dimensions agree on."""

from __future__ import annotations

import math

from ridgeline.graph.offline.program.graph import Node
from ridgeline.graph.offline.program.ir import NotCovered
from ridgeline.tools.records.graph_ops import base_name

NORMS = ("native_layer_norm", "_softmax", "_log_softmax", "_fused_rms_norm")
REDUCING = {
    "sum": 1,
    "mean": 1,
    "amax": 1,
    "amin": 1,
    "var": 1,
    "prod": 1,
    "linalg_vector_norm": 2,
    "logsumexp": 1,
    "any": 1,
    "all": 1,
    "_softmax": 1,
    "_log_softmax": 1,
}
"""The position of each reduction's dimension argument; native_layer_norm states a shape instead."""
MIN_COLS = 2


def grid_of(nodes: dict[str, Node], outputs: list[str]) -> tuple[int, int]:
    """Return rows and columns: those of every reduction, else the last dimension of the largest output.

    Raises:
        NotCovered: the reductions disagree, or reduce a whole tensor.
    """
    grids = {_reduced_grid(n, nodes) for n in nodes.values() if is_reducing(n)}
    if len(grids) > 1:
        raise NotCovered("reductions over rows of different lengths")
    if grids:
        rows, cols = grids.pop()
    else:
        shape = max((nodes[name]["shape"] for name in outputs), key=math.prod)
        cols = shape[-1] if shape else 1
        rows = math.prod(shape) // max(cols, 1)
    if rows < 2 or cols < MIN_COLS:
        raise NotCovered(f"{rows} rows of {cols} elements: a reduction over a whole tensor, or nothing to reduce")
    return rows, cols


def is_reducing(node: Node) -> bool:
    """Tell whether a node reduces or normalises rows."""
    return base_name(node["op"]) in REDUCING or base_name(node["op"]) in NORMS


def _reduced_grid(node: Node, nodes: dict[str, Node]) -> tuple[int, int]:
    shape = nodes[node["args"][0]["node"]]["shape"]
    operation = base_name(node["op"])
    if operation in ("native_layer_norm", "_fused_rms_norm"):
        count = len(node["args"][1])
    else:
        count = _trailing_count(node, operation, len(shape))
    inner = math.prod(shape[len(shape) - count :])
    return math.prod(shape) // max(inner, 1), inner


def _trailing_count(node: Node, operation: str, rank: int) -> int:
    at = REDUCING[operation]
    given = node["args"][at] if len(node["args"]) > at else node["kwargs"].get("dim")
    if given is None or given == []:
        return rank
    dims = {int(d) % rank for d in (given if isinstance(given, list) else [given])}
    if dims != set(range(rank - len(dims), rank)):
        raise NotCovered(f"{node['op']} over other than the last dimensions")
    return len(dims)
