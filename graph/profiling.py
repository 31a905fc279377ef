"""What limits an elite, found out once and shown to the models."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ridgeline.graph.elites import Standing
from ridgeline.graph.events import emit
from ridgeline.graph.measuring import call_tool
from ridgeline.tools.errors import EngineError

if TYPE_CHECKING:
    from ridgeline.graph.context import SearchContext


async def profile(context: SearchContext, standing: Standing) -> None:
    """Have an elite profiled unless it was; an engine that fails costs the diagnosis, not the search."""
    evaluation = standing.evaluation
    if await asyncio.to_thread(context.archive.find, "profiles", evaluation.key) is not None:
        return
    try:
        await call_tool(context, "profile", standing.candidate.id, evaluation.purpose)
    except EngineError as error:
        emit({"event": "warning", "message": f"{standing.candidate.id}: no diagnosis: {error}"})
