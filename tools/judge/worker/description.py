"""A reference's description, for the judge and for an outline alike."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.graph_export import (
    Graph,
    GraphExportError,
    compulsory_bytes,
    export_graph,
    flop_count,
)
from ridgeline.tools.judge.worker.kept_graphs import kept_graph
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.problem import Description


def describe(reference: Reference, inputs: Tensors, source: str, graphs: Path | None = None) -> Description:
    """Return the description, without what only a judge finds out: skipped trials, a module's contract.

    Args:
        reference: its model still holds the parameters that it was made with.
        inputs: one draw of them.
        source: the text that the reference was made of.
        graphs: the folder of graphs that were exported before; None: export it anew.
    """
    graph, graph_error = _graph(reference, inputs, source, graphs)
    return Description(
        signature=reference.signature,
        reference_graph=graph,
        graph_error=graph_error,
        compulsory_bytes=compulsory_bytes(reference.signature),
        flops=flop_count(graph) if graph else 0,
        reference_sha256=hashlib.sha256(source.encode()).hexdigest(),
        torch_version=str(torch.__version__),
    )


def _graph(reference: Reference, inputs: Tensors, source: str, graphs: Path | None) -> tuple[Graph | None, str]:
    """Return the reference's graph, or None and why there is none."""

    def export() -> Graph:
        return export_graph(reference.model, reference.arguments(inputs), reference.signature)

    try:
        return kept_graph(graphs, source, reference.signature, export), ""
    except GraphExportError as error:
        return None, str(error)
