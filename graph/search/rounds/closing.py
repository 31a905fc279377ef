"""The end of a round: its elites, its summary, its progress, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ridgeline.checkpoints.history.idea_results import GAIN
from ridgeline.checkpoints.round_record import RoundRecord
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.search.budget import Consumption, spent
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.ideas.memory import unwritten_branches
from ridgeline.graph.search.judging.judging import judged_standings, profile_elites
from ridgeline.graph.search.ranking.elites import Standing, best_of_ideas, ranked_elites
from ridgeline.graph.search.ranking.leaders import compare_for_elites
from ridgeline.graph.search.rounds.stop_rules import Stop, first_stop, outcome_state, ranking_state, tell_stop
from ridgeline.graph.state import Route
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.vocabulary import Origin, Purpose, SearchOutcome

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.shape.plan import Plan
    from ridgeline.graph.state import SearchState

logger = logger_of(__name__)


async def close_round(
    context: SearchContext, plan: Plan, state: SearchState, *, stalled_rounds: int, may_tune: bool = False
) -> SearchState:
    """Keep the fastest kernels, remember what the round taught, and decide what follows.

    `stalled_rounds` are those without progress if this one made none. Where the round `may_tune` and a kernel is correct,
    tuning follows, which closes the round again: what only the next round needs waits for it.
    """
    round_ = state.get("round", 0)
    standings = await judged_standings(context)
    best = standings[0] if standings else None
    is_tuned_next = may_tune and best is not None
    if goes_on := not is_tuned_next and round_ < plan.rounds:
        await compare_for_elites(context, standings)
    elites = await ranked_elites(context.archive, standings, plan.elites)
    stalled_rounds = 0 if _is_progress(best, state) else stalled_rounds
    taught = best_of_ideas(standings, state.get("ideas", [])) if goes_on else []
    await profile_elites(context, [*elites, *taught])
    record = await _save_summary(context, round_, elites, best)
    is_cut = bool(await unwritten_branches(context.archive, state))
    whole_rounds = round_ - 1 if is_cut else round_
    stop = await first_stop(context, plan, round_=whole_rounds, stalled_rounds=stalled_rounds, best=best)
    route = _route(stop, is_tuned_next=is_tuned_next)
    if route is not Route.TUNE:
        _tell_round(plan, record)
        if context.renew_report is not None:
            await run_whole(context.renew_report)
    if stop and route is Route.CERTIFY:
        await tell_stop(context.archive, stop)
    _log(round_, best, stop)
    return {
        **ranking_state(elites, best),
        **outcome_state(stop),
        "stalled_rounds": stalled_rounds,
        "route": route.value,
    }


def _route(stop: Stop | None, *, is_tuned_next: bool) -> Route:
    """Return the next node; a search that may not spend more or cannot gain more is not tuned again."""
    if stop and stop.outcome in (SearchOutcome.BUDGET, SearchOutcome.AT_FLOOR):
        return Route.CERTIFY
    if is_tuned_next:
        return Route.TUNE
    return Route.CERTIFY if stop else Route.IDEATE


def _log(round_: int, best: Standing | None, stop: Stop | None) -> None:
    told = f"{best.candidate.id} {best.speedup:.3f}x" if best else "none"
    logger.info("round %d: best %s %s", round_, told, stop.outcome if stop else "")


def _is_progress(best: Standing | None, state: SearchState) -> bool:
    """Say whether sure_speedup(best) > GAIN * sure_speedup(best before)."""
    return best is not None and best.sure_speedup > GAIN * (state.get("best_sure_speedup") or 0.0)


async def _save_summary(
    context: SearchContext, round_: int, elites: Sequence[Standing], best: Standing | None
) -> RoundRecord:
    """Store and return the round's record; called again after tuning, it replaces the record."""
    used = await spent(context)
    return await run_whole(_save_record, context, round_, elites, best, used)


def _tell_round(plan: Plan, record: RoundRecord) -> None:
    """Tell the viewers that a round is over: once a round, after its tuning."""
    emit(
        {
            "event": "round_done",
            "round": record.round,
            "max_rounds": plan.told_rounds,
            "best_id": record.best_id,
            "best_speedup": record.best_speedup,
            "best_speedup_ci95": list(record.best_speedup_ci95) if record.best_speedup_ci95 else None,
            "best_median_ms": record.best_median_ms,
            "elites": list(record.elites or ()),
            "tokens": record.tokens or 0,
            "usd": record.usd or 0.0,
            "unpriced_calls": record.unpriced_calls or 0,
        }
    )


def _save_record(
    context: SearchContext, round_: int, elites: Sequence[Standing], best: Standing | None, used: Consumption
) -> RoundRecord:
    record = _record(context.archive, round_, elites, best, used)
    context.archive.save_round(record)
    # stored here so that a killed search forgets the time of one round at most
    context.archive.save_run(RunRecord(wall_s=used.wall_s, finding_s=used.finding_s))
    return record


def _record(
    archive: Archive, round_: int, elites: Sequence[Standing], best: Standing | None, used: Consumption
) -> RoundRecord:
    candidates = archive.candidates(round=round_)
    written = [c for c in candidates if c.origin is Origin.MODEL]
    judged = [archive.evaluation(c.id) for c in written]
    own = {c.id for c in candidates}
    interval = best.evaluation.speedup_interval if best else None
    return RoundRecord(
        round=round_,
        ideas=tuple(idea.id for idea in archive.ideas(round_)),
        candidates=len(written),
        ok=sum(1 for e in judged if e is not None and e.speedup is not None),
        tuned=sum(1 for e in archive.evaluations(purpose=Purpose.TUNE) if e.candidate_id in own),
        best_id=best.candidate.id if best else None,
        best_speedup=best.speedup if best else None,
        best_speedup_ci95=(interval[0], interval[1]) if interval else None,
        best_median_ms=best.median_ms if best else None,
        elites=tuple(s.candidate.id for s in elites),
        tokens=used.tokens,
        usd=used.usd,
        unpriced_calls=used.unpriced_calls,
        wall_s=used.wall_s,
        gpu_s=used.gpu_s,
    )
