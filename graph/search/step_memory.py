"""Measurements of the certificate that are kept one by one, so that a killed search does not repeat a finished one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from ridgeline.checkpoints.archive import comparison_key
from ridgeline.tools.engine import CompareTask
from ridgeline.tools.records.keys import evaluation_key
from ridgeline.tools.records.results import Build, Comparison, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Purpose

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.engine import Task

Built = tuple[Candidate, Build]

TABLES: dict[type, str] = {Verdict: "verdicts", Timing: "timings"}

Measured = TypeVar("Measured", Verdict, Timing)


async def measure_once(  # noqa: PLR0917 - a step is named by what it measures
    context: SearchContext, step: str, candidate: Candidate, build: Build, task: Task[Measured], kind: type[Measured]
) -> Measured:
    """Return what `task` measures for this step of the certificate: the stored record, else a new one, then stored.

    `step` tells apart the measurements of one kernel for one purpose: "verify", "time 0", "audit time 1". Raises
    EngineError as the engine does; such a step is measured again.
    """
    key = f"{evaluation_key(build.key, await context.described(), Purpose.CERTIFY)}:{step}"
    known = await asyncio.to_thread(context.archive.find, TABLES[kind], key)
    if known is not None:
        return kind.from_json(dict(known))
    measured = await context.engine.submit(task)
    await asyncio.to_thread(context.archive.save, TABLES[kind], key, candidate.id, measured)
    return measured


async def compare_once(context: SearchContext, first: Built, second: Built, *, of: Candidate) -> Comparison:
    """Return two kernels' times in one alternating run: as stored, else measured and then stored as `of`'s.

    Raises EngineError as the engine does.
    """
    (one, one_build), (other, other_build) = first, second
    problem = await context.described()
    builds = (one_build, other_build)
    under = "+".join(evaluation_key(build.key, problem, Purpose.CERTIFY)[:16] for build in builds)
    key = comparison_key(one.id, other.id, under)
    known = await asyncio.to_thread(context.archive.find, "comparisons", key)
    if known is not None:
        return Comparison.from_json(dict(known))
    task = CompareTask(problem=problem, first=one, first_build=one_build, second=other, second_build=other_build)
    measured = await context.engine.submit(task)
    await asyncio.to_thread(context.archive.save, "comparisons", key, of.id, measured)
    return measured
