"""What limits an elite, found out once and shown to the models."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ridgeline.graph.elites import Standing
from ridgeline.graph.events import emit
from ridgeline.tools.engine import ProfileTask
from ridgeline.tools.errors import EngineError

if TYPE_CHECKING:
    from ridgeline.graph.context import SearchContext


async def profile(context: SearchContext, standing: Standing) -> None:
    """Store an elite's profile unless it is stored; an engine that fails costs the diagnosis, not the search."""
    candidate, evaluation = standing.candidate, standing.evaluation
    if evaluation.build is None or await asyncio.to_thread(context.archive.find, "profiles", candidate.id):
        return
    task = ProfileTask(
        problem=await context.described(), candidate=candidate, build=evaluation.build, timing=evaluation.timing
    )
    try:
        found = await context.engine.submit(task)
    except EngineError as error:
        emit({"event": "warning", "message": f"{candidate.id}: no diagnosis: {error}"})
        return
    await asyncio.to_thread(context.archive.save, "profiles", candidate.id, candidate.id, found)
