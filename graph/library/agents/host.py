"""The graph of a host in which an agent's tool is called: its stream, its wish to end, and the task that a call belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.runtime import RunControl, get_runtime

from ridgeline.graph.search.events import from_here

if TYPE_CHECKING:
    from langgraph.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The surroundings of a call; outside of a graph a stream that nobody reads, no control and no task."""

    write: Callable[[Any], None]  # to the host's custom stream
    control: RunControl | None
    task_id: str  # the same when the host's graph does a task again, as after a kill; "" outside of a graph


def host_of_call() -> Host:
    """Return the host in whose context this is called; to be called before a search's own graph runs."""
    runtime = _runtime()
    if runtime is None:
        return Host(write=lambda _: None, control=None, task_id="")
    task_id = runtime.execution_info.task_id if runtime.execution_info else ""
    # a search's own graph would hide the host's
    return Host(write=from_here(runtime.stream_writer), control=runtime.control, task_id=task_id)


def _runtime() -> Runtime[Any] | None:
    config = var_child_runnable_config.get()
    return get_runtime() if config and "configurable" in config else None


class AnyStop(RunControl):
    """A search's own control, which drains when one of the others does; a request to it leaves the others alone."""

    __slots__ = ("_others",)

    def __init__(self, *others: RunControl | None) -> None:
        super().__init__()
        self._others = tuple(other for other in others if other is not None)

    @property
    def drain_requested(self) -> bool:
        """Say whether this one or another was asked to drain."""
        return super().drain_requested or any(other.drain_requested for other in self._others)

    @property
    def drain_reason(self) -> str | None:
        """Return the reason of whichever was asked."""
        reasons = (super().drain_reason, *(other.drain_reason for other in self._others))
        return next((reason for reason in reasons if reason is not None), None)
