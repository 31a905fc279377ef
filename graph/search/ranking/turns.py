"""Two kernels timed in turns, in one alternating run: the ratio of their times, or which of them failed there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.search.ranking.elites import Standing
from ridgeline.tools.engine import CompareTask
from ridgeline.tools.records.results import Build, Comparison, FailedComparison
from ridgeline.tools.records.vocabulary import Purpose

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltStanding:
    """A standing whose kernel is built again."""

    standing: Standing
    build: Build

    @property
    def id(self) -> str:
        """Return the kernel's id."""
        return self.standing.candidate.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncompared:
    """An alternating run that a kernel's failure ended."""

    failed: BuiltStanding | None  # None where nothing is said of either
    reason: str

    @property
    def failed_id(self) -> str | None:
        """Return the id of the kernel that failed, None where it may be either."""
        return self.failed.id if self.failed else None


async def time_in_turns(
    context: SearchContext, first: BuiltStanding, second: BuiltStanding, *, purpose: Purpose
) -> Comparison | Uncompared:
    """Return how an alternating run of two kernels ended; EngineError as the engine raises it."""
    task = CompareTask(
        problem=context.described,
        first=first.standing.candidate,
        first_build=first.build,
        second=second.standing.candidate,
        second_build=second.build,
        purpose=purpose,
    )
    found = await context.measure(task)
    if isinstance(found, FailedComparison):
        failed = None if found.at_fault is None else (first, second)[found.at_fault]
        return Uncompared(failed=failed, reason=found.reason)
    return found
