"""The measuring of a search's kernels in this session: by which engine, and what is under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ridgeline.graph.search.running.pauses import Pauses

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from langgraph.prebuilt import ToolNode

    from ridgeline.tools.engines.remembering import RememberingEngine
    from ridgeline.tools.records.vocabulary import Purpose


@dataclass(slots=True, kw_only=True)
class Measuring:
    """The engine, where its device is, and the measurements that are under way or that failed.

    `toolboxes` and `unjudged` fill, `compiled` is begun and joined; what `pauses` counts changes inside it. No other field
    is set during a search.
    """

    engine: RememberingEngine
    devices: int = 1  # measurements that the engine makes side by side
    is_away: bool = False  # its device is on another machine: what needs it waits, and the search parks
    cores_in_use: Callable[[], float] | None = None  # cores that other programs use here; None: measured elsewhere
    toolboxes: dict[Purpose, ToolNode] = field(default_factory=dict)  # made at their first use
    unjudged: set[tuple[str, Purpose]] = field(default_factory=set)  # candidates that the engine failed on this session
    pauses: Pauses = field(default_factory=Pauses)
    compiled: asyncio.Task[None] | None = None  # times PyTorch's compiled configurations while models think

    @property
    def is_busy(self) -> bool:
        """Say whether a kernel's step or PyTorch's timing is under way."""
        is_timing = self.compiled is not None and not self.compiled.done()
        return bool(self.pauses.steps or is_timing)
