"""Branches that a spent budget left without a kernel: what a resumed search does first when there is room again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import BranchPlan


async def unwritten_branches(context: SearchContext, state: Mapping[str, Any]) -> list[BranchPlan]:
    """Return the last round's branches of which no attempt is stored.

    A branch whose model failed is stored with its reason; only one that never asked its model, since the budget was
    spent, is not.
    """
    planned: list[BranchPlan] = list(state.get("branches") or [])
    if not planned:
        return []
    stored = {c.id for c in await asyncio.to_thread(context.archive.candidates, round=int(state.get("round", 0)))}
    return [branch for branch in planned if f"{branch['idea_id']}v{branch['variation']}a0" not in stored]
