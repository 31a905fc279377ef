"""The decisions that a replay takes by what its recording holds, where times or failures here are others.

A search that replays nothing decides as always. So does a strict replay, but for two things. The branch that repairs an
error which several have is the recorded one, whichever is first here; and an idea whose answer names its parents as an
earlier search did starts from those that it was recorded with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ridgeline.graph.search.events import warn
from ridgeline.graph.search.ranking.elites import read_standings
from ridgeline.tools.records.keys import attempt_id, attempt_of, branch_of, write_id
from ridgeline.tools.threads import run_whole

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.recording.recording import RecordedMending
    from ridgeline.graph.models.recorded_answers import Answers
    from ridgeline.graph.models.requests import Elite, IdeaDraft
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import BranchState
    from ridgeline.tools.records.search import Idea


async def has_repair(state: BranchState, context: SearchContext) -> bool:
    """Say whether a branch's kernel may go back to its model: repairs are left, and in a replay one was recorded."""
    attempt = state.get("attempt", 0)
    if attempt >= context.settings.repairs:
        return False
    if (guide := _guide(context)) is None:
        return True
    idea = await run_whole(context.archive.idea, state["idea_id"])
    return guide.may_write(_repair_id(state), idea)


async def recorded_repair(state: BranchState, context: SearchContext) -> tuple[RecordedMending | None, bool]:
    """Return what another branch's edit made of a branch's kernel in the recorded search, and whether its model repaired it."""
    if context.recorded is None:
        return None, False
    idea = await run_whole(context.archive.idea, state["idea_id"])
    written = write_id(attempt_id(state["idea_id"], state["variation"], state.get("attempt", 0)))
    return context.recorded.mended(written, idea), context.recorded.holds(_repair_id(state), idea)


async def repair_or_end(state: BranchState, context: SearchContext) -> BranchState:
    """Return a branch's way on after a failure: to its model, or to its end, which is told where a repair is missing."""
    attempt = state.get("attempt", 0)
    if await has_repair(state, context):
        return {"stage": "write", "attempt": attempt + 1}
    if attempt < context.settings.repairs:
        warn(f"{state['candidate_id']}: failed here, and no repair of it was recorded")
    return {"stage": "done"}


def _guide(context: SearchContext) -> Answers | None:
    """Return what a replay decides by that goes on where a call was not recorded."""
    recorded = context.recorded
    return None if recorded is None or recorded.is_strict else recorded


def _repair_id(state: BranchState) -> str:
    return write_id(attempt_id(state["idea_id"], state["variation"], state.get("attempt", 0) + 1))


def is_taken(
    context: SearchContext, draft: IdeaDraft, round_: int, others: Iterable[IdeaDraft], *, is_new: bool
) -> bool:
    """Say whether an idea is taken beside the round's others: a new one, but in a replay what the recorded search took.

    What was tried and failed differs here, so that an idea may repeat another one here alone, or there alone. Its kernels
    are recorded or are not.
    """
    recorded = _guide(context)
    if recorded is None:
        return is_new
    if recorded.holds_kernel_of(draft, round_):
        return all((draft.title, draft.mechanism) != (other.title, other.mechanism) for other in others)
    return is_new and not (recorded.is_alone and recorded.asked_for_more(round_))


def recorded_shares(context: SearchContext, round_: int, further: str) -> dict[str, int]:
    """Return of how many ideas each model was asked in the recorded search; nothing where it was not asked so."""
    if (guide := _guide(context)) is None:
        return {}
    shares = guide.shares(round_, further)
    return {name: n for name in context.models.names if (n := shares.get(context.models.place(name), 0))}


def recorded_writer(context: SearchContext, idea: Idea, variation: int, assigned: str) -> str:
    """Return the model that wrote an idea's implementation in the recorded search; else the assigned one."""
    if (guide := _guide(context)) is None:
        return assigned
    writer = guide.writer(write_id(attempt_id(idea.id, variation, 0)), idea)
    return writer if writer in context.models.names else assigned


async def nameable_kernels(
    context: SearchContext, elites: Iterable[Elite], round_: int, drafts: Iterable[IdeaDraft]
) -> Mapping[str, str]:
    """Return the kernels that ideas of `drafts` may start from, by the ids that their models may name.

    A model may name the elites that it was shown. A recorded one was shown others: those that are correct here too stand
    for themselves. For a tuned one whose point was not tried here stands the fastest of its sweep, and for a repaired one
    that needed no repair here its branch's fastest. A name that the recorded search did not show, since it was a
    replay itself, means the kernel that stood for it there; so it does in a strict replay.
    """
    known = {elite.candidate_id: elite.candidate_id for elite in elites}
    if context.recorded is None:
        return known
    guide = _guide(context)
    renamed = dict(pair for draft in drafts for pair in context.recorded.renamed_parents(draft, round_))
    shown = guide.shown(round_) if guide else frozenset[str]()
    here = await run_whole(_as_here, context.archive, shown.union(renamed.values()), is_exact=guide is None)
    meant = {name: here[stood] for name, stood in renamed.items() if stood in here}
    return {**(here if guide else {}), **known, **meant}


def _as_here(archive: Archive, named: Collection[str], *, is_exact: bool) -> dict[str, str]:
    """Return the correct kernels that stand for recorded ones; where it `is_exact`, each for itself alone."""
    if not named:
        return {}
    correct = [standing.candidate.id for standing in read_standings(archive)]
    found = {each: _stand_in(each, correct) for each in named}
    return {each: here for each, here in found.items() if here is not None and (here == each or not is_exact)}


def _stand_in(recorded_id: str, correct: Sequence[str]) -> str | None:
    """Return the kernel that stands for a recorded one, of `correct` ones, fastest first; None where none does."""
    if recorded_id in correct:
        return recorded_id
    for unit_of in (attempt_of, branch_of):
        unit = unit_of(recorded_id)
        if here := next((each for each in correct if unit and unit_of(each) == unit), None):
            return here
    return None
