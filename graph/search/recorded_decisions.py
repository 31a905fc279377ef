"""The decisions that a replay takes by what its recording holds, where times or failures here are others.

A strict replay decides as a search that replays nothing, but for three things. The branch that repairs an error which several
have is the recorded one, whichever is first here; an idea whose answer names its parents as an earlier search did starts
from those that it was recorded with; and a point of a sweep that was recorded is tried, also where a sibling has its source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.search.decisions import Decisions, LiveDecisions, by_own_id
from ridgeline.graph.search.ranking.elites import read_standings
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.keys import attempt_id, attempt_of, branch_of, write_id

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.recording.recording import RecordedMending
    from ridgeline.graph.models.pool import ModelPool
    from ridgeline.graph.models.recorded_answers import Answers
    from ridgeline.graph.models.requests import Elite, IdeaDraft, Stated
    from ridgeline.graph.state import BranchState
    from ridgeline.tools.records.search import Idea


def decisions_of(recorded: Answers | None, archive: Archive, models: ModelPool) -> Decisions:
    """Return how a search decides that replays these answers, or nothing."""
    if recorded is None:
        return LiveDecisions()
    kind = RecordedDecisions if recorded.is_strict else GuidedDecisions
    return kind(recorded=recorded, archive=archive, models=models)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecisions(LiveDecisions):
    """Implements `Decisions` of a replay; as it stands, of a strict one, which ends at a call that was not recorded."""

    recorded: Answers
    archive: Archive
    models: ModelPool

    async def recorded_repair(self, state: BranchState) -> tuple[RecordedMending | None, bool]:
        """Return what another branch's edit made of a branch's kernel, and whether its model repaired it."""
        idea = await run_whole(self.archive.idea, state["idea_id"])
        written = write_id(attempt_id(state["idea_id"], state["variation"], state.get("attempt", 0)))
        return self.recorded.mended(written, idea), self.recorded.holds(_repair_id(state), idea)

    async def nameable_kernels(
        self, elites: Iterable[Elite], round_: int, drafts: Sequence[IdeaDraft]
    ) -> Mapping[str, str]:
        """Return the elites, and by each name that the recorded search did not show the kernel that stood for it there.

        Such names are of a search that the recorded one replayed.
        """
        renamed = self._renamed(round_, drafts)
        here = await run_whole(_as_here, self.archive, renamed.values(), is_exact=True)
        return {**by_own_id(elites), **_meant(renamed, here)}

    def has_kernel_of(self, idea: Stated, round_: int) -> bool:
        """Say whether the recorded search asked for a kernel of this idea in this round."""
        return self.recorded.holds_kernel_of(idea, round_)

    def was_tuned(self, source: str) -> bool:
        """Say whether the recorded search measured this source as a point: an older version did so of a sibling's too."""
        return self.recorded.holds_point(source)

    def why_no_idea(self, *, composes_alone: bool) -> str:
        """Return that the recording has none."""
        return "the recording has no further idea"

    def _renamed(self, round_: int, drafts: Iterable[IdeaDraft]) -> dict[str, str]:
        return dict(pair for draft in drafts for pair in self.recorded.renamed_parents(draft, round_))


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedDecisions(RecordedDecisions):
    """Implements `Decisions` of a replay that goes on where a call was not recorded: it tries what was tried."""

    async def may_repair(self, state: BranchState) -> bool:
        """Say whether the repair was recorded, or a model answers what was not."""
        idea = await run_whole(self.archive.idea, state["idea_id"])
        return self.recorded.may_write(_repair_id(state), idea)

    def is_taken(self, draft: IdeaDraft, round_: int, others: Iterable[IdeaDraft], *, is_new: bool) -> bool:
        """Say whether the recorded search took an idea; of one that it did not have, whether it is new.

        What was tried and failed differs here, so that an idea may repeat another one here alone, or there alone. Its
        kernels are recorded or are not.
        """
        if self.recorded.holds_kernel_of(draft, round_):
            return all((draft.title, draft.mechanism) != (other.title, other.mechanism) for other in others)
        return is_new and not (self.recorded.is_alone and self.recorded.asked_for_more(round_))

    def shares(self, round_: int, further: str) -> dict[str, int]:
        """Return of how many ideas each model was asked; nothing where it was not asked so."""
        shares = self.recorded.shares(round_, further)
        return {name: n for name in self.models.names if (n := shares.get(self.models.place(name), 0))}

    def writer(self, idea: Idea, variation: int, assigned: str) -> str:
        """Return the model that wrote an idea's implementation; else the assigned one."""
        writer = self.recorded.writer(write_id(attempt_id(idea.id, variation, 0)), idea)
        return writer if writer in self.models.names else assigned

    async def nameable_kernels(
        self, elites: Iterable[Elite], round_: int, drafts: Sequence[IdeaDraft]
    ) -> Mapping[str, str]:
        """Return also what the model was shown when it was recorded: those that are correct here too stand for themselves.

        For a tuned one whose point was not tried here stands the fastest of its sweep, and for a repaired one that needed no
        repair here its branch's fastest.
        """
        renamed = self._renamed(round_, drafts)
        shown = self.recorded.shown(round_).union(renamed.values())
        here = await run_whole(_as_here, self.archive, shown, is_exact=False)
        return {**here, **by_own_id(elites), **_meant(renamed, here)}


def _repair_id(state: BranchState) -> str:
    return write_id(attempt_id(state["idea_id"], state["variation"], state.get("attempt", 0) + 1))


def _meant(renamed: Mapping[str, str], here: Mapping[str, str]) -> dict[str, str]:
    """Return by each name the kernel here for the one that stood for it, where there is one."""
    return {name: here[stood] for name, stood in renamed.items() if stood in here}


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
