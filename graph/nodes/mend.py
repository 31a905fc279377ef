"""After a build that failed: what can be mended without a model; else the branch goes on to the repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.graph.search.branch import announce, branch_of_state, move
from ridgeline.graph.search.budget import exhausted, spent
from ridgeline.graph.search.repairs.mending import (
    Try,
    as_recorded,
    best_of,
    find_repaired,
    is_from_sibling,
    read_tries,
    with_edit_of,
    with_fix_its,
)
from ridgeline.graph.search.way_on import has_repair, repair_or_end
from ridgeline.tools.errors import NotBegun
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.keys import attempt_id, write_id

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import BranchState
    from ridgeline.tools.records.search import Candidate

logger = logger_of(__name__)


async def mend(state: BranchState, context: SearchContext) -> BranchState:
    """Store what the compiler's fix-its or a sibling's edit make of the kernel; without either, ask for its repair."""
    attempt = state.get("attempt", 0)
    announce(state, state["candidate_id"], "mend")
    written = attempt_id(state["idea_id"], state["variation"], attempt)
    tries = await run_whole(read_tries, context.archive, written)
    last = tries[-1]
    if last.candidate.id != state["candidate_id"]:  # an earlier session stored it and was ended
        return move(state, last.candidate.id, "compile")
    asked = write_id(attempt_id(state["idea_id"], state["variation"], attempt + 1))
    if await run_whole(context.journal.call, asked) or exhausted(context.budget, await spent(context)):
        return await repair_or_end(state, context)
    try:
        mended = with_fix_its(tries) or await _as_siblings(state, context, tries)
    except NotBegun:
        return {"stage": "mend"}  # the graph drains: a resumed search takes the branch up here
    if mended is None:
        return await repair_or_end(state, context)
    logger.info("%s: made of %s without a call", mended.id, last.candidate.id)
    await run_whole(context.archive.add_candidate, mended)
    return move(state, mended.id, "compile")


async def _as_siblings(state: BranchState, context: SearchContext, tries: list[Try]) -> Candidate | None:
    """Return the kernel with the edit that mended the same error in another branch of the round, once in an attempt.

    The first branch with an error has its model repair it, and the others wait for that, unless it takes hours. In a
    replay the recording says which branch that was, so that it does not matter which is first here.
    """
    if is_from_sibling(tries):
        return None
    recorded, has_own_repair = await context.decisions.recorded_repair(state)
    if recorded is not None:
        return as_recorded(tries, recorded)
    if has_own_repair:
        return None
    signature, branch, model = best_of(tries).signature, branch_of_state(state), state["model"]
    repairs, can_ask = context.sibling_repairs, await has_repair(state, context)
    repaired_id = repairs.repaired(signature) or await run_whole(
        find_repaired, context.archive, signature, state["round"], branch
    )
    repaired_id = repaired_id or repairs.repaired(signature)  # which it may have become meanwhile
    if repaired_id is None and can_ask and repairs.begin(signature, branch, model):
        return None
    repaired_id = repaired_id or await repairs.outcome(signature, model)
    if repaired_id is None:
        return None
    return await run_whole(with_edit_of, context.archive, tries, repaired_id)
