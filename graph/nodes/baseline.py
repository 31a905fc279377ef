"""Time eager PyTorch and the floor before a token is spent, and judge the kernels that exist already."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.search.coverage import ensure_covered
from ridgeline.graph.search.device_table import device_table
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.judging.compiled import baseline_event, is_pytorch_at_floor
from ridgeline.graph.search.judging.judging import judged_standings
from ridgeline.graph.search.ranking.elites import ranked_elites
from ridgeline.graph.search.rounds.seeds import judge_seeds, seed_candidates
from ridgeline.graph.search.rounds.stop_rules import PYTORCH_AT_FLOOR, outcome_state, ranking_state, tell_stop
from ridgeline.graph.search.running.leaving import left_at_stop
from ridgeline.tools.build.entry_match import takes_same_types
from ridgeline.tools.build.interfaces import entry_declaration
from ridgeline.tools.engine import BaselineTask, DescribeTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import SearchState

logger = logger_of(__name__)

BANK_SEEDS = 3
"""Kernels taken from the bank: each costs a build, a verification and a timing before the search starts."""


async def baseline(state: SearchState, context: SearchContext) -> SearchState:
    """Describe and time the reference, judge seeds and bank kernels as round 0; `outcome` is set when nothing is left.

    On an extended search everything is found in the archive and only the stop is lifted. A stop leaves what is in flight,
    which takes minutes before the first kernel of a search.

    Raises:
        NotBegun: a stop was asked for.
    """
    return await left_at_stop(_begun(state, context), is_stopping=context.is_stopping)


async def _begun(state: SearchState, context: SearchContext) -> SearchState:
    if max_rounds := state.get("max_rounds"):
        await run_whole(context.archive.save_run, RunRecord(max_rounds=max_rounds))
    await _describe(context)
    baselines = await _baselines(context)
    context.facts = await run_whole(device_table, context, baselines.floor)
    await judge_seeds(context, await _seeds(context))
    standings = await judged_standings(context)
    elites = await ranked_elites(context.archive, standings, context.plan(state.get("max_rounds")).elites)
    best = standings[0] if standings else None
    stop = PYTORCH_AT_FLOOR if is_pytorch_at_floor(context, baselines) else None
    if stop:
        await tell_stop(context.archive, stop)
    return {
        "round": state.get("round", 0),
        **ranking_state(elites, best),
        **outcome_state(stop),
        "stalled_rounds": 0,
        "certified": False,
    }


async def _describe(context: SearchContext) -> None:
    """Set the context's described target.

    A refusal comes before it is set, so that a new search leaves no run folder.
    """
    described = context.target.described(await context.measure(DescribeTask(problem=context.target)))
    ensure_covered(context, described)
    context.described_target = described


async def _baselines(context: SearchContext) -> Baselines:
    found = await context.measure(BaselineTask(problem=context.described, eager_only=True))
    best = found.best()
    if best is None or best.median_ms is None:
        errors = "; ".join(f"{b.name}: {b.error}" for b in found.entries)
        raise EngineError(f"{context.problem.name}: no baseline could be timed: {errors}")
    emit(baseline_event(found))
    return found


async def _seeds(context: SearchContext) -> list[Candidate]:
    """Return the problem's seed kernels and the bank's."""
    return [
        *await run_whole(seed_candidates, context.problem, context.target),
        *await run_whole(_bank_candidates, context),
    ]


def _bank_candidates(context: SearchContext) -> list[Candidate]:
    """Return the bank's kernels for this family and architecture; a resumed search keeps those it began with.

    They are stored before the flag that says so: a search killed in between reads the bank again.
    """
    if context.bank is None or context.archive.run().bank_read:
        return context.archive.candidates(origin=Origin.BANK)
    target = context.described
    found = context.bank.seeds(context.family, target.device.arch, BANK_SEEDS)
    usable = [c for c in found if c.interface == target.interface and c.language == target.language]
    # a family's kernels take different arguments: x and a mask, x and its weights
    wanted = entry_declaration(target.description.signature, target.device.kind, target.interface)
    for candidate in (c for c in usable if takes_same_types(c.source, wanted)):
        bank_kernel = dataclasses.replace(candidate, origin=Origin.BANK, round=0, idea_id=None, parent_id=None)
        context.archive.add_candidate(bank_kernel)
    context.archive.save_run(RunRecord(bank_read=True))
    return context.archive.candidates(origin=Origin.BANK)
