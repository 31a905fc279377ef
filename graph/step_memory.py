"""Measurements of the certificate that are kept step by step, so that a killed search does not repeat a finished one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from ridgeline.tools.compiler import evaluation_key
from ridgeline.tools.records import Build, Candidate, Purpose, Timing, Verdict

if TYPE_CHECKING:
    from ridgeline.graph.context import SearchContext
    from ridgeline.tools.engine import Task

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
