"""Who writes a run's files once it is known how its search ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.records.vocabulary import RunState

Finish: TypeAlias = "Callable[[SearchContext, RunState], object]"
"""Called by `certify`; until the run's files exist, the search can be resumed."""


def left_to_session(context: SearchContext, state: RunState) -> None:
    """Write nothing: the session does when the graph has ended, and then stores how the search ended."""
