"""The rules by which a search goes on after a round or ends, and the part of its state that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.search.budget import exhausted, spent
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.judging.compiled import is_pytorch_at_floor
from ridgeline.graph.search.ranking.elites import Standing
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.results import BELIEVED_FROM
from ridgeline.tools.records.vocabulary import SearchOutcome
from ridgeline.tools.wording import counted

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.shape.plan import Plan
    from ridgeline.graph.state import SearchState


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of a search, with its reason for a reader."""

    outcome: SearchOutcome
    reason: str


NO_GAIN = Stop(SearchOutcome.NO_GAIN, "no certified kernel is faster than eager PyTorch")
PYTORCH_AT_FLOOR = Stop(SearchOutcome.AT_FLOOR, "PyTorch itself is within the margin of the floor")


def ranking_state(elites: Sequence[Standing], best: Standing | None) -> SearchState:
    """Return the part of the state that says which kernels are ahead."""
    return {
        "elites": [standing.candidate.id for standing in elites],
        "best_id": best.candidate.id if best else None,
        "best_speedup": best.speedup if best else None,
        "best_sure_speedup": best.sure_speedup if best else None,
    }


def outcome_state(stop: Stop | None) -> SearchState:
    """Return the part of the state that says whether the search is over."""
    return {"outcome": stop.outcome.value if stop else ""}


async def first_stop(
    context: SearchContext, plan: Plan, *, round_: int, stalled_rounds: int, best: Standing | None
) -> Stop | None:
    """Return the stop of the first stop rule that holds, or None.

    A spent budget ends no search whose `round_` is its last: a larger one would find nothing left to do.
    """
    over = exhausted(context.budget, await spent(context)) or context.allowance.ended
    if over and round_ < plan.rounds:
        return Stop(SearchOutcome.BUDGET, over)
    if stop := await _floor_stop(context, best):
        return stop
    if round_ >= plan.rounds:
        done = f"{counted(plan.rounds, 'round')} done"
        return Stop(SearchOutcome.FINISHED, f"{done}; {over}" if over else done)
    if plan.stall_rounds is not None and stalled_rounds >= plan.stall_rounds:
        return Stop(SearchOutcome.STALLED, f"no gain in {counted(stalled_rounds, 'round')}")
    return None


async def tell_stop(archive: Archive, stop: Stop) -> None:
    """Store why the search ends, and tell the viewers that its rounds are over.

    NO_GAIN takes the place of the rounds' own stop, which is kept for a kernel that is certified later.
    """
    record = RunRecord(stop_reason=stop.reason)
    if stop is not NO_GAIN:
        record = replace(record, rounds_outcome=stop.outcome, rounds_reason=stop.reason)
    await run_whole(archive.save_run, record)
    emit({"event": "stopped", "outcome": stop.outcome, "reason": stop.reason})


def rounds_stop(archive: Archive, state: SearchState) -> Stop:
    """Return the rounds' own stop of a search that ended `no_gain`; an earlier archive says of it only how many there were."""
    run = archive.run()
    if run.rounds_outcome is None:
        return Stop(SearchOutcome.FINISHED, f"{counted(state.get('round', 0), 'round')} done")
    return Stop(run.rounds_outcome, run.rounds_reason or "")


async def _floor_stop(context: SearchContext, best: Standing | None) -> Stop | None:
    margin = context.settings.floor_margin
    baselines = await context.baselines()
    if is_pytorch_at_floor(context, baselines):
        return PYTORCH_AT_FLOOR
    floor_ms = baselines.floor.floor_ms
    if margin is None or best is None or floor_ms <= 0:
        return None
    # The judge believes no time below its floor. One below the stored floor means that the judge has measured a lower one
    # since: the machine was busy when the search began.
    if not BELIEVED_FROM * floor_ms <= best.median_ms <= (1 + margin) * floor_ms:
        return None
    reason = f"{best.candidate.id} takes {best.median_ms:.4g} ms, the floor is {floor_ms:.4g} ms"
    return Stop(SearchOutcome.AT_FLOOR, reason)
