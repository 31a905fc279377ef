"""Ridgeline: searches for a faster native kernel that does the work of a PyTorch module, and proves it.

`search` runs a whole search, `evaluate` judges kernels, `asearch` and `aevaluate` do so in an event loop, `open_run` reads a
run, `load` gives its winner as a torch module, `make_graph` the LangGraph graph to embed; what they raise is a
`RidgelineError`. These names are stable, see docs/embedding.md. They load when first used, so that `import ridgeline` costs
nothing.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ridgeline.graph.build import GraphConfig, make_graph
    from ridgeline.graph.library.run import Run, RunCandidate, RunIdea, RunRound, open_run
    from ridgeline.graph.library.winner import load
    from ridgeline.graph.session.api import asearch, search, search_tool
    from ridgeline.graph.session.evaluation import Evaluation, aevaluate, evaluate
    from ridgeline.graph.session.options import SearchRequest as SearchOptions
    from ridgeline.graph.session.outputs import SearchResult
    from ridgeline.graph.session.session import open_context, run_search
    from ridgeline.problems.spec import Budget, ProblemSpec
    from ridgeline.tools.errors import (
        BadReferenceError,
        DeviceError,
        EngineError,
        InputError,
        ModelError,
        NotBegun,
        ProblemError,
        RidgelineError,
        RunError,
        SandboxError,
        StorageError,
    )

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent, unless the host listens

__version__ = "0.1.0"
__all__ = [
    "BadReferenceError",
    "Budget",
    "DeviceError",
    "EngineError",
    "Evaluation",
    "GraphConfig",
    "InputError",
    "ModelError",
    "NotBegun",
    "ProblemError",
    "ProblemSpec",
    "RidgelineError",
    "Run",
    "RunCandidate",
    "RunError",
    "RunIdea",
    "RunRound",
    "SandboxError",
    "SearchOptions",
    "SearchResult",
    "StorageError",
    "__version__",
    "aevaluate",
    "asearch",
    "evaluate",
    "load",
    "make_graph",
    "open_context",
    "open_run",
    "run_search",
    "search",
    "search_tool",
]

_HOMES = {
    "GraphConfig": ("ridgeline.graph.build", "GraphConfig"),
    "make_graph": ("ridgeline.graph.build", "make_graph"),
    "SearchOptions": ("ridgeline.graph.session.options", "SearchRequest"),
    "SearchResult": ("ridgeline.graph.session.outputs", "SearchResult"),
    "open_context": ("ridgeline.graph.session.session", "open_context"),
    "run_search": ("ridgeline.graph.session.session", "run_search"),
    "Evaluation": ("ridgeline.graph.session.evaluation", "Evaluation"),
    "aevaluate": ("ridgeline.graph.session.evaluation", "aevaluate"),
    "evaluate": ("ridgeline.graph.session.evaluation", "evaluate"),
    **{n: ("ridgeline.graph.library.run", n) for n in ("Run", "RunCandidate", "RunIdea", "RunRound", "open_run")},
    **{n: ("ridgeline.problems.spec", n) for n in ("Budget", "ProblemSpec")},
    **{
        n: ("ridgeline.tools.errors", n)
        for n in (
            *("BadReferenceError", "DeviceError", "EngineError", "InputError", "ModelError", "NotBegun"),
            *("ProblemError", "RidgelineError", "RunError", "SandboxError", "StorageError"),
        )
    },
    "load": ("ridgeline.graph.library.winner", "load"),
    "asearch": ("ridgeline.graph.session.api", "asearch"),
    "search": ("ridgeline.graph.session.api", "search"),
    "search_tool": ("ridgeline.graph.session.api", "search_tool"),
}
"""The module of each public name, and the object's name there."""


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ridgeline' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
