"""The graph that langgraph.json names: LangGraph's server draws it, and runs a search with the context of its form.

Importing this opens nothing.
"""

from __future__ import annotations

from ridgeline.graph.hosting.node import make_hosted_graph

graph = make_hosted_graph()
