"""Families of operations: the seed bank files a problem's kernels under its family."""

from __future__ import annotations

from ridgeline.tools.records.problem import Description

# the operations that usually cost most come first
FAMILIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("attention", ("scaled_dot_product", "attention")),
    ("convolution", ("convolution", "conv1d", "conv2d", "conv3d")),
    ("matmul", ("mm", "bmm", "addmm", "matmul", "linear")),
    ("pooling", ("max_pool", "avg_pool")),
    ("rowwise", ("softmax", "layer_norm", "group_norm", "sum", "mean", "amax", "amin", "var", "logsumexp", "prod")),
)


def family_of(description: Description) -> str:
    """Return the first of FAMILIES that the reference's graph has an operation of; "elementwise" when it only maps.

    A name to file kernels under, not a cost: a graph with one small matmul among many reductions is "matmul".
    """
    graph = description.reference_graph
    if not graph:
        return "unknown"
    operations = [str(node.get("op", "")).rpartition("::")[2].split(".") for node in graph.get("nodes", [])]
    names = {part.strip("_") for parts in operations for part in parts}
    for family, markers in FAMILIES:
        if any(name == marker or (len(marker) > 4 and marker in name) for name in names for marker in markers):
            return family
    return "elementwise"
