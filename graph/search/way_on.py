"""The way on of a branch whose kernel failed: back to its model, or to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.graph.search.events import warn

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import BranchState


async def has_repair(state: BranchState, context: SearchContext) -> bool:
    """Say whether a branch's kernel may go back to its model: repairs are left, and in a replay one was recorded."""
    return state.get("attempt", 0) < context.settings.repairs and await context.decisions.may_repair(state)


async def repair_or_end(state: BranchState, context: SearchContext) -> BranchState:
    """Return a branch's way on after a failure: to its model, or to its end, which is told where a repair is missing."""
    attempt = state.get("attempt", 0)
    if await has_repair(state, context):
        return {"stage": "write", "attempt": attempt + 1}
    if attempt < context.settings.repairs:
        warn(f"{state['candidate_id']}: failed here, and no repair of it was recorded")
    return {"stage": "done"}
