"""The decisions that a replay takes by its recording, and how every other search takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ridgeline.checkpoints.recording.recording import RecordedMending
    from ridgeline.graph.models.requests import Elite, IdeaDraft, Stated
    from ridgeline.graph.state import BranchState
    from ridgeline.tools.records.search import Idea


class Decisions(Protocol):
    """The decisions that a search takes by its own rules, and a replay by what was recorded."""

    async def may_repair(self, state: BranchState) -> bool:
        """Say whether a branch's kernel may go back to its model, which has repairs left."""
        ...

    async def recorded_repair(self, state: BranchState) -> tuple[RecordedMending | None, bool]:
        """Return what another branch's edit made of a kernel in a recorded search, and whether its model repaired it."""
        ...

    def is_taken(self, draft: IdeaDraft, round_: int, others: Iterable[IdeaDraft], *, is_new: bool) -> bool:
        """Say whether an idea is taken beside the round's others; it `is_new` where it repeats nothing."""
        ...

    def shares(self, round_: int, further: str) -> dict[str, int]:
        """Return of how many ideas each model is asked; nothing where the bandit says so."""
        ...

    def writer(self, idea: Idea, variation: int, assigned: str) -> str:
        """Return the model that writes an idea's implementation; the bandit assigned one."""
        ...

    async def nameable_kernels(
        self, elites: Iterable[Elite], round_: int, drafts: Sequence[IdeaDraft]
    ) -> Mapping[str, str]:
        """Return the kernels that ideas of `drafts` may start from, by the ids that their models may name."""
        ...

    def has_kernel_of(self, idea: Stated, round_: int) -> bool:
        """Say whether a kernel of this idea was asked for in this round of a recorded search."""
        ...

    def was_tuned(self, source: str) -> bool:
        """Say whether a recorded search measured this source as a point of a sweep."""
        ...

    def why_no_idea(self, *, composes_alone: bool) -> str:
        """Return why a round has no idea; `composes_alone` where the offline model is the only one."""
        ...


def by_own_id(elites: Iterable[Elite]) -> dict[str, str]:
    """Return elites' ids, each as the name of the kernel that has it."""
    return {elite.candidate_id: elite.candidate_id for elite in elites}


class LiveDecisions:
    """Implements `Decisions` of a search that replays nothing."""

    async def may_repair(self, state: BranchState) -> bool:
        """Let it go back."""
        return True

    async def recorded_repair(self, state: BranchState) -> tuple[RecordedMending | None, bool]:
        """Return nothing: no search was recorded."""
        return None, False

    def is_taken(self, draft: IdeaDraft, round_: int, others: Iterable[IdeaDraft], *, is_new: bool) -> bool:
        """Take every new idea."""
        return is_new

    def shares(self, round_: int, further: str) -> dict[str, int]:
        """Leave the shares to the bandit."""
        return {}

    def writer(self, idea: Idea, variation: int, assigned: str) -> str:
        """Return the model that the bandit assigned."""
        return assigned

    async def nameable_kernels(
        self, elites: Iterable[Elite], round_: int, drafts: Sequence[IdeaDraft]
    ) -> Mapping[str, str]:
        """Return the elites that the model was shown, each by its own id."""
        return by_own_id(elites)

    def has_kernel_of(self, idea: Stated, round_: int) -> bool:
        """Say no: no search was recorded."""
        return False

    def was_tuned(self, source: str) -> bool:
        """Say no: no search was recorded."""
        return False

    def why_no_idea(self, *, composes_alone: bool) -> str:
        """Return that the models had none."""
        return "the offline model had no further idea" if composes_alone else "no model had a further idea"
