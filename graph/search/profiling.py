"""What limits a kernel, found out once: of elites for the models that read it, of the winner for its user."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ridgeline.graph.models.registry import OFFLINE
from ridgeline.graph.search.elites import Standing
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.measuring import call_tool
from ridgeline.tools.errors import EngineError

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext


async def profile_elites(context: SearchContext, elites: Sequence[Standing]) -> None:
    """Have the elites profiled before models are asked for ideas.

    The offline model reads the reference's graph alone, and a look by Nsight Compute takes as long as measuring two
    kernels (a search for softmax on an H200 had its GPU measure half of the time).
    """
    if context.models.names == [OFFLINE]:
        return
    for standing in elites:
        await profile(context, standing)


async def profile(context: SearchContext, standing: Standing) -> None:
    """Have a kernel profiled unless it was; an engine that fails costs the diagnosis, not the search."""
    evaluation = standing.evaluation
    if await asyncio.to_thread(context.archive.find, "profiles", evaluation.key) is not None:
        return
    try:
        await call_tool(context, "profile", standing.candidate.id, evaluation.purpose)
    except EngineError as error:
        emit({"event": "warning", "message": f"{standing.candidate.id}: no diagnosis: {error}"})
