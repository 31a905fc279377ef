"""The search that a thread's folder holds already: whether it is over, and what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.runs.folders import UNFINISHED, lock_run
from ridgeline.graph.session.outputs import SearchResult, forget_winner, write_result
from ridgeline.tools.records.vocabulary import RunState

if TYPE_CHECKING:
    from ridgeline.graph.session.options import ResolvedSearch


def result_of_ended(search: ResolvedSearch, max_rounds: int | None) -> SearchResult | None:
    """Return what a search that is over found, its files written anew; None for one that is to run.

    One that is asked for more rounds than it has is to run: its certificate is dropped, for the kernel that it certifies next
    counts. So is one that its budget ended, under another budget.
    """
    state = search.begun.state
    if not search.has_begun or state is None or state in UNFINISHED:
        return None
    with lock_run(search.run_dir), Archive.open(search.run_dir, create=False) as archive:
        has_room = state is RunState.BUDGET and search.budget.model_dump() != search.begun.budget
        if has_room or (max_rounds is not None and max_rounds > len(archive.rounds())):
            forget_winner(search.run_dir, archive)
            return None
        return write_result(search.run_dir, archive, state)
