"""The search that a thread's folder holds already: whether it is over, and what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.runs.folders import UNFINISHED, lock_run
from ridgeline.graph.session.outputs import SearchResult, write_result
from ridgeline.tools.records.vocabulary import RunState

if TYPE_CHECKING:
    from ridgeline.graph.session.options import ResolvedSearch


def is_over(search: ResolvedSearch) -> bool:
    """Say whether the folder holds a search that has come to its end, which an outcome names."""
    state = search.begun.state
    return search.has_begun and state is not None and state not in UNFINISHED


def result_of_ended(search: ResolvedSearch, max_rounds: int | None) -> SearchResult | None:
    """Return what a search that is over found, its files written anew; None for one that is to run.

    One that is asked for more rounds than it has is to run. So is one that its budget ended, under another budget, and one
    that was killed as it forgot its winner to go on.
    """
    state = search.begun.state
    if not is_over(search) or state is None:
        return None
    with lock_run(search.run_dir), Archive.open(search.run_dir, create=False) as archive:
        has_room = state is RunState.BUDGET and search.budget.model_dump() != search.begun.budget
        has_more_rounds = max_rounds is not None and max_rounds > len(archive.rounds())
        if has_room or has_more_rounds or archive.run().best_id is None:
            return None
        return write_result(search.run_dir, archive, state)
