"""Graphs of references that this machine exported before: an export imports some 1200 modules of torch's, for seconds.

A graph follows from the reference's text, its signature, torch and the exporter, which its file's name is a digest of. That
holds for a reference that computes from nothing else: one that imports more than torch and pure modules, or reads a file or
its environment, is exported anew each time.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ridgeline.tools.judge.worker import graph_export
from ridgeline.tools.judge.worker.graph_export import GRAPH_SCHEMA_VERSION, Graph
from ridgeline.tools.machine.kept_records import read_kept
from ridgeline.tools.machine.places import replace_json
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Signature

_PURE = (
    "__future__ abc collections copy dataclasses enum functools itertools math numbers operator torch typing warnings"
)
_READING = (
    "__import__ cuda environ eval exec from_file hub import_module load load_library load_state_dict_from_url open"
)
PURE_MODULES = frozenset(_PURE.split())
_READS = frozenset(_READING.split())
"""Names with which a reference reaches what its text does not hold: files, packages, the machine."""
_PARTS = ("schema_version", "nodes", "inputs", "parameters", "outputs", "mutations")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGraph(Record):
    """One graph as it is kept."""

    graph: dict[str, Any]


def kept_graph(folder: Path | None, source: str, signature: Signature, export: Callable[[], Graph]) -> Graph:
    """Return the reference's graph: the one in `folder`, else that of `export`, which is kept there.

    Without a folder, and for a reference whose text does not tell all, it is exported. What cannot be kept is not: only
    time is lost.

    Raises:
        GraphExportError: as `export` does.
    """
    if folder is None or not tells_all(source):
        return export()
    path = folder / f"{_digest(source, signature)}.json"
    known = read_kept(path, KeptGraph)
    if known is not None and _is_whole(known.graph):
        return known.graph
    graph = export()
    with contextlib.suppress(OSError):
        replace_json(path, KeptGraph(graph=graph).to_json())
    return graph


def tells_all(source: str) -> bool:
    """Say whether what a reference computes follows from its text and torch alone."""
    return all(_is_pure(node) for node in ast.walk(ast.parse(source)))


def _is_pure(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        paths = [alias.name.split(".") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        paths = [[*("." * node.level + (node.module or "")).split("."), alias.name] for alias in node.names]
    elif isinstance(node, ast.Name | ast.Attribute):
        return (node.id if isinstance(node, ast.Name) else node.attr) not in _READS
    else:
        return True
    return all(path[0] in PURE_MODULES and not _READS.intersection(path) for path in paths)


def _digest(source: str, signature: Signature) -> str:
    exporter = Path(graph_export.__file__).read_bytes()
    told = [source, signature.to_json(), str(torch.__version__), sys.version]
    return hashlib.sha256(exporter + json.dumps(told, sort_keys=True).encode()).hexdigest()


def _is_whole(graph: Graph) -> bool:
    return graph.get("schema_version") == GRAPH_SCHEMA_VERSION and all(part in graph for part in _PARTS)
