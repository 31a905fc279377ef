"""Time eager PyTorch and the floor before a token is spent, and judge the kernels that exist already."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import TYPE_CHECKING

from ridgeline.graph.search.compiled import PYTORCH_AT_FLOOR, baseline_event, is_pytorch_at_floor
from ridgeline.graph.search.coverage import ensure_covered
from ridgeline.graph.search.elites import choose_elites, read_standings
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.measuring import evaluate, gather_or_cancel, measure_again
from ridgeline.tools.build.entry_match import takes_same_types
from ridgeline.tools.build.header import entry_declaration
from ridgeline.tools.engine import BaselineTask, DescribeTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.results import Baselines
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Purpose

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import SearchState
    from ridgeline.problems.spec import ProblemSpec
    from ridgeline.tools.records.problem import Target

logger = logging.getLogger(__name__)

BANK_SEEDS = 3
"""Kernels taken from the bank: each costs a build, a verification and a timing before the search starts."""


async def baseline(state: SearchState, context: SearchContext) -> SearchState:
    """Describe and time the reference, judge seeds and bank kernels as round 0; `outcome` is set when nothing is left.

    On an extended search everything is found in the archive and only the stop is lifted.
    """
    await _describe(context)
    baselines = await _baselines(context)
    await _judge_seeds(context)
    await measure_again(context)
    standings = await asyncio.to_thread(read_standings, context.archive)
    elites = choose_elites(standings, context.plan(state.get("max_rounds")).elites)
    best = standings[0] if standings else None
    outcome = "at_floor" if is_pytorch_at_floor(context, baselines) else ""
    if outcome:
        emit({"event": "stopped", "outcome": outcome, "reason": PYTORCH_AT_FLOOR})
    return {
        "round": state.get("round", 0),
        "elites": [s.candidate.id for s in elites],
        "best_id": best.candidate.id if best else None,
        "best_speedup": best.speedup if best else None,
        "best_sure_speedup": best.sure_speedup if best else None,
        "stalled_rounds": 0,
        "outcome": outcome,
        "certified": False,
    }


async def _describe(context: SearchContext) -> None:
    stored = await asyncio.to_thread(context.archive.description)
    if stored is not None:
        ensure_covered(context, stored)
    else:
        description = await context.engine.submit(DescribeTask(problem=context.target))
        ensure_covered(context, description)  # before anything is stored: a new search then leaves no run folder
        await asyncio.to_thread(context.archive.save_description, description)
    await context.described()


async def _baselines(context: SearchContext) -> Baselines:
    found = await asyncio.to_thread(context.archive.baselines)
    if found is None:
        found = await context.engine.submit(BaselineTask(problem=await context.described(), eager_only=True))
        await asyncio.to_thread(context.archive.save_baselines, found)
    best = found.best()
    if best is None or best.median_ms is None:
        errors = "; ".join(f"{b.name}: {b.error}" for b in found.entries)
        raise EngineError(f"{context.problem.name}: no baseline could be timed: {errors}")
    emit(baseline_event(found))
    return found


async def _judge_seeds(context: SearchContext) -> None:
    """Judge seed and bank kernels side by side; the engine decides what really runs at once."""
    seeds = [
        *await asyncio.to_thread(seed_candidates, context.problem, context.target),
        *await asyncio.to_thread(_bank_candidates, context),
    ]
    for evaluation in await gather_or_cancel(*(evaluate(context, seed, Purpose.SEARCH) for seed in seeds)):
        if evaluation.speedup is None:
            message = f"{evaluation.candidate_id}: {evaluation.status}: {evaluation.reason}"
            emit({"event": "warning", "message": message})


def seed_candidates(problem: ProblemSpec, target: Target) -> list[Candidate]:
    """Return the candidates of a problem's seed kernels for the target's device."""
    return [
        Candidate(
            id=f"seed-{stem}",
            origin=Origin.SEED,
            round=0,
            idea_id=None,
            parent_id=None,
            source=source,
            language=target.language,
            interface=target.interface,
        )
        for stem, source in problem.seed_sources(target.device.kind.value)
    ]


def _bank_candidates(context: SearchContext) -> list[Candidate]:
    """Return the bank's kernels for this family and architecture; a resumed search keeps those it began with.

    They are stored before the flag that says so: a search killed in between reads the bank again.
    """
    if context.bank is None or context.archive.run().get("bank_read"):
        return context.archive.candidates(origin=Origin.BANK)
    target, description = context.target, context.archive.description()
    found = context.bank.seeds(context.family(), target.device.arch, BANK_SEEDS)
    usable = [c for c in found if c.interface == target.interface and c.language == target.language]
    if description is not None:  # a family's kernels take different arguments: x and a mask, x and its weights
        wanted = entry_declaration(description.signature, target.device.kind, target.interface)
        usable = [c for c in usable if takes_same_types(c.source, wanted)]
    for candidate in usable:
        bank_kernel = dataclasses.replace(candidate, origin=Origin.BANK, round=0, idea_id=None, parent_id=None)
        context.archive.add_candidate(bank_kernel)
    context.archive.save_run({"bank_read": True})
    return context.archive.candidates(origin=Origin.BANK)
