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
    from ridgeline.graph.cli.view.event_lines import EventLines
    from ridgeline.graph.hosting.node import make_hosted_graph, search_node
    from ridgeline.graph.hosting.outcome import HostedOutput
    from ridgeline.graph.hosting.settings import HostedSearch
    from ridgeline.graph.library.agents.subagent import subagent
    from ridgeline.graph.library.agents.tool import evaluate_tool, search_tool
    from ridgeline.graph.library.agents.toolbox import open_toolbox
    from ridgeline.graph.library.evaluation import Evaluation, aevaluate, evaluate
    from ridgeline.graph.library.run import Run, RunCandidate, RunIdea, RunRound, open_run
    from ridgeline.graph.library.search import asearch, search
    from ridgeline.graph.library.winner import load
    from ridgeline.graph.session.opened_search import open_context
    from ridgeline.graph.session.options import SearchRequest as SearchOptions
    from ridgeline.graph.session.outputs import SearchResult
    from ridgeline.graph.session.session import run_search
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
    "EventLines",
    "GraphConfig",
    "HostedOutput",
    "HostedSearch",
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
    "evaluate_tool",
    "load",
    "make_graph",
    "make_hosted_graph",
    "open_context",
    "open_run",
    "open_toolbox",
    "run_search",
    "search",
    "search_node",
    "search_tool",
    "subagent",
]

_HOMES = {
    "GraphConfig": ("ridgeline.graph.build", "GraphConfig"),
    "make_graph": ("ridgeline.graph.build", "make_graph"),
    "HostedOutput": ("ridgeline.graph.hosting.outcome", "HostedOutput"),
    "HostedSearch": ("ridgeline.graph.hosting.settings", "HostedSearch"),
    "make_hosted_graph": ("ridgeline.graph.hosting.node", "make_hosted_graph"),
    "search_node": ("ridgeline.graph.hosting.node", "search_node"),
    "SearchOptions": ("ridgeline.graph.session.options", "SearchRequest"),
    "SearchResult": ("ridgeline.graph.session.outputs", "SearchResult"),
    "open_context": ("ridgeline.graph.session.opened_search", "open_context"),
    "run_search": ("ridgeline.graph.session.session", "run_search"),
    "Evaluation": ("ridgeline.graph.library.evaluation", "Evaluation"),
    "aevaluate": ("ridgeline.graph.library.evaluation", "aevaluate"),
    "evaluate": ("ridgeline.graph.library.evaluation", "evaluate"),
    **{n: ("ridgeline.graph.library.run", n) for n in ("Run", "RunCandidate", "RunIdea", "RunRound", "open_run")},
    **{n: ("ridgeline.problems.spec", n) for n in ("Budget", "ProblemSpec")},
    **{
        n: ("ridgeline.tools.errors", n)
        for n in (
            *("BadReferenceError", "DeviceError", "EngineError", "InputError", "ModelError", "NotBegun"),
            *("ProblemError", "RidgelineError", "RunError", "SandboxError", "StorageError"),
        )
    },
    "EventLines": ("ridgeline.graph.cli.view.event_lines", "EventLines"),
    "load": ("ridgeline.graph.library.winner", "load"),
    "asearch": ("ridgeline.graph.library.search", "asearch"),
    "search": ("ridgeline.graph.library.search", "search"),
    **{n: ("ridgeline.graph.library.agents.tool", n) for n in ("evaluate_tool", "search_tool")},
    "open_toolbox": ("ridgeline.graph.library.agents.toolbox", "open_toolbox"),
    "subagent": ("ridgeline.graph.library.agents.subagent", "subagent"),
}
"""The module of each public name, and the object's name there."""


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ridgeline' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
