"""PyTorch's compiled configurations, timed beside the search: begun while models think, joined before they count.

torch.compile takes 36 to 83 s on an H200, mostly for max-autotune. The search needs eager and the floor at once, the
rest only where a gain over PyTorch's best is decided or shown. The order on the device:

- A language model thinks for tens of seconds a round: the modes begin with the first ideas, one engine task each, and
  each in a pause between kernels. A kernel that is ready waits for the mode under way at most. The end of the round
  waits for all modes.
- The offline model answers in milliseconds, and a limit on wall time is meant for kernels: the modes come after the
  last kernel, before certification.

Each measured mode is stored at once. A search that was killed measures the pending ones only. A certificate measures
all of them again, which alone is meant to happen twice.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ridgeline.checkpoints.history.over_pytorch import speedup_vs_best
from ridgeline.graph.search.events import BaselineEvent, emit, warn
from ridgeline.tools.engine import NextBaselineTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.reference_mode import mode_words

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.records.baselines import Baselines

logger = logger_of(__name__)


def runs_beside_models(context: SearchContext) -> bool:
    """Say whether the modes are timed while models think, and not after the last kernel."""
    return context.models.thinks and context.budget.wall_s is None and not context.measuring.is_away


async def begin_compiled(context: SearchContext) -> None:
    """Begin to time the pending modes in the background, once a session, where models leave the device idle."""
    if context.measuring.compiled is not None or not runs_beside_models(context):
        return
    if (await context.baselines()).pending:
        context.measuring.compiled = asyncio.create_task(_measure_pending(context))


async def join_compiled(context: SearchContext) -> None:
    """Return once no mode is pending: wait for those begun in the background, time the others now.

    A mode that the engine failed on in the background is tried once more here, and one that was killed in an earlier session.

    Raises:
        EngineError: the engine failed again; the search can be resumed.
        NotBegun: a stop was asked for.
    """
    begun, context.measuring.compiled = context.measuring.compiled, None
    if begun is None:
        await context.measuring.engine.reopen_baselines()
    pending = (await context.baselines()).pending
    if begun is None and not pending:
        return
    if begun is not None and pending:
        _tell(pending)
    context.measuring.pauses.end_waits()
    try:
        await (begun or _measure_pending(context, tell=_tell))
    except EngineError as error:
        if begun is None:
            raise
        logger.warning("PyTorch's compiled configurations: %s: trying again", error)
        await _measure_pending(context, tell=_tell)
    await _settle(context)


async def finish_compiled(context: SearchContext) -> None:
    """Return once the modes begun in the background are timed.

    For a search that has nothing else to do until replies come. A mode that the engine failed on stays pending.

    Raises:
        NotBegun: a stop was asked for.
    """
    begun, context.measuring.compiled = context.measuring.compiled, None
    if begun is None:
        return
    context.measuring.pauses.end_waits()
    try:
        await begun
    except EngineError as error:
        logger.warning("PyTorch's compiled configurations: %s: left to the end of the round", error)
    await _settle(context)


async def _settle(context: SearchContext) -> None:
    """Store what each kernel gains over PyTorch's times as they are now and tell them; the last time, warn of any missing."""
    baselines = await context.baselines()
    await run_whole(_add_gains, context.archive, baselines)
    if not baselines.pending:
        _warn_of_failed(baselines)
    emit(baseline_event(baselines))


async def end_compiled(context: SearchContext) -> None:
    """Cancel the timing in the background; a resumed search measures the mode at hand again."""
    begun, context.measuring.compiled = context.measuring.compiled, None
    if begun is not None:
        begun.cancel()
        await asyncio.gather(begun, return_exceptions=True)


def baseline_event(baselines: Baselines) -> BaselineEvent:
    """Return the event that tells viewers PyTorch's times."""
    best, floor = baselines.best(), baselines.floor
    best_ms = best.median_ms if best is not None else None
    return {
        "event": "baseline",
        "baselines_ms": {b.name: b.median_ms for b in baselines.entries},
        "stored": baselines.stored(),
        "floor_ms": floor.floor_ms,
        "compute_floor_ms": floor.compute_floor_ms,
        "bound": floor.bound,
        "headroom": best_ms / floor.floor_ms if best_ms is not None and floor.floor_ms > 0 else None,
    }


def _warn_of_failed(baselines: Baselines) -> None:
    """Say why a compiled configuration has no time: a full disk is the user's to mend, and a gain over it is not known."""
    for entry in baselines.entries:
        if entry.median_ms is None and entry.name.compile_mode:
            warn(f"PyTorch's {mode_words(entry.name)} is not timed: {entry.error.removeprefix(f'{entry.name}: ')}")


def is_pytorch_at_floor(context: SearchContext, baselines: Baselines) -> bool:
    """Say whether PyTorch's best configuration measured so far leaves nothing to gain."""
    best, margin = baselines.best(), context.settings.floor_margin
    if margin is None or best is None or best.median_ms is None:
        return False
    return best.median_ms <= baselines.floor.floor_ms * (1 + margin)


def _tell(pending: Sequence[str]) -> None:
    """Tell the viewers that the first of these modes is timed, and the others after it."""
    emit({"event": "timing_pytorch", "pending": list(pending)})


async def _measure_pending(context: SearchContext, *, tell: Callable[[Sequence[str]], None] | None = None) -> None:
    """Time the pending modes in order, each a task of its own and in a pause between kernels.

    `tell` is called before each. In the background nobody is told: no node of the graph is there to stream.
    """
    baselines = await context.baselines()
    while baselines.pending:
        if tell is not None:
            context.check_stop()  # before its mode is told, which would not be timed
            tell(baselines.pending)
        await context.measuring.pauses.wait()
        baselines = await context.measure(NextBaselineTask(problem=context.described, after=baselines))


def _add_gains(archive: Archive, baselines: Baselines) -> None:
    """Add the gain over PyTorch's best to the evaluations that were stored before the best was known."""
    for evaluation in archive.evaluations():
        gain = speedup_vs_best(evaluation, baselines)
        if gain != evaluation.speedup_vs_best:
            archive.add_evaluation(dataclasses.replace(evaluation, speedup_vs_best=gain))
