"""Kernels that a search is given, judged side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.gathering import gather_or_cancel
from ridgeline.graph.search.judging import evaluate
from ridgeline.tools.records.vocabulary import Purpose

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.records.search import Candidate


async def judge_seeds(context: SearchContext, seeds: Sequence[Candidate]) -> None:
    """Judge kernels, with a warning for each that is no use; the engine decides what really runs at once."""
    for ended in await gather_or_cancel(*(evaluate(context, seed, Purpose.SEARCH) for seed in seeds)):
        evaluation = ended.as_evaluation() if isinstance(ended, EngineFailure) else ended
        if evaluation.speedup is None:
            message = f"{evaluation.candidate_id}: {evaluation.status}: {evaluation.reason}"
            emit({"event": "warning", "message": message})
