"""Ridgeline: searches for a faster native kernel that does the work of a PyTorch module, and proves it.

`search` runs a whole search, `evaluate` judges kernels, `make_graph` gives the LangGraph graph to embed. They load when
first used, so that `import ridgeline` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ridgeline.graph.build import make_graph
    from ridgeline.graph.embed import evaluate, search

__version__ = "0.1.0"
__all__ = ["__version__", "evaluate", "make_graph", "search"]

_HOMES = {"make_graph": "ridgeline.graph.build", "evaluate": "ridgeline.graph.embed", "search": "ridgeline.graph.embed"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ridgeline' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
