"""Timing in the parent: a candidate in alternation with eager PyTorch, two candidates with each other, or one side alone.

Blocks run in rounds of A B B A, and the idle side is stopped. The score is max(parent's clock - the usual cost of a
request, own clock) over loops on rotating sets. Contents are secret and new for every call where the sets allow (see
timed_side.py). Outputs are poisoned before a block and checked right after it, while the candidate is stopped.
docs/timing.md gives the reasons and the limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.gpu_state import GpuState, usual_clocks
from ridgeline.tools.measure.alternation import AlternatingRun, planner_of, warm_up
from ridgeline.tools.measure.block_plan import BlockPlanner
from ridgeline.tools.measure.distrust import (
    Distrusted,
    SlowRenewals,
    expect_consistent,
    expect_drained,
    expect_idle,
    expect_prompt,
    slowdown_of,
)
from ridgeline.tools.measure.paired_blocks import ratio_of
from ridgeline.tools.measure.request_cost import LoopCost, usual_ticket_s
from ridgeline.tools.measure.sides import CandidateSide, ReferenceSide
from ridgeline.tools.measure.statistics import (
    PairedRatio,
    median_interval,
    percentile,
)
from ridgeline.tools.measure.timed_side import Collect, TimedCandidate, TimedSide
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.finding import faults_of
from ridgeline.tools.records.results import BELIEVED_FROM, QUARANTINE_ABOVE, Comparison, Timing
from ridgeline.tools.records.vocabulary import Label, ReasonCode, Status

LAUNCH_BOUND_MS = 0.1
NO_COST = LoopCost()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedTiming:
    """The times of PyTorch's own blocks, and whether other programs took cores meanwhile."""

    values: tuple[float, ...]  # seconds per call, or ratios to another side's
    was_busy: bool


def time_candidate(
    candidate: CandidateSide,
    reference: ReferenceSide,
    judge: JudgeProcess,
    *,
    settings: TimingSettings,
    floor: Floor | None,
    collect: Collect | None = None,
    cost: LoopCost = NO_COST,
    observe: Callable[[], GpuState] = GpuState,
) -> Timing:
    """Return a candidate's time and its speedup over the reference, both from one alternating run.

    One that cannot be trusted has a status and a reason instead of figures. `collect` brings the candidate's outputs into
    the judge's memory, `cost` is what a block usually costs beside its calls, `observe` gives a GPU's state.

    Raises:
        SlowRenewals: contents were renewed slowly; a judge that is alone again can tell whether that was the machine's doing.
        Exception: as a side does when it dies.
    """
    started = time.perf_counter()
    ours = TimedCandidate(side=candidate, judge=judge, collect=collect, cost=cost, observe=observe)
    theirs = _trusted(reference, judge, observe)
    # who has outputs to collect is a runner of the same program
    ours.costs_from = theirs if collect and theirs.is_apart else None
    try:
        warm_up(ours, theirs, settings)
        run = AlternatingRun(ours, theirs, settings)
        _weigh_tickets(theirs, reference, run.planner)
        measured = run.alternate()
        run.expect_fresh()
        run.expect_even()
        run.expect_every_kind()
        expect_idle(candidate, settings.idle_s)
        expect_consistent(ours, theirs)
        slowdown = slowdown_of(ours, theirs) / settings.slowdown_alone
        expect_drained(slowdown, ours, theirs)
        timing = _timing(ours, theirs, measured, floor, slowdown)
        expect_prompt(ours)
    except SlowRenewals:
        raise  # the caller can ask the judge for its pace with no candidate there
    except Distrusted as fault:
        timing = Timing.failed(fault.finding)
    finally:
        reference.cont()
    return replace(timing, benchmark_s=time.perf_counter() - started)


def compare_sides(
    first: CandidateSide,
    second: CandidateSide,
    judge: JudgeProcess,
    *,
    settings: TimingSettings,
    collects: Sequence[Collect | None] = (None, None),
    cost: LoopCost = NO_COST,
    observe: Callable[[], GpuState] = GpuState,
) -> Comparison:
    """Return the ratio of two candidates' times (first / second) from one alternating run.

    `collects` belong to the two candidates in order; `cost` and `observe` are as in `time_candidate`.

    Raises:
        SlowRenewals: as `time_candidate` does.
        Distrusted: an output timed here was wrong, work went on between calls, or a clock disagreed. `contender` says
            whose, where it is not the GPU that either left busy. What a side raises when it dies says so too.
    """
    one, other = (
        TimedCandidate(
            side=each,
            judge=judge,
            contender=i,
            collect=collect,
            cost=cost,
            observe=observe,
        )
        for i, (each, collect) in enumerate(zip((first, second), collects, strict=True))
    )
    warm_up(one, other, settings)
    run = AlternatingRun(one, other, replace(settings, rule=settings.rule.without_giving_up()))
    run.alternate()
    run.expect_fresh()
    run.expect_even()
    run.expect_every_kind()
    for timed in (one, other):
        with faults_of(timed.contender):
            expect_idle(timed.side, settings.idle_s)
            timed.side.stop()
    expect_drained(slowdown_of(one, other) / settings.slowdown_alone, one, other)
    for timed, beside in ((one, other), (other, one)):
        with faults_of(timed.contender):
            expect_consistent(timed, beside)
            expect_prompt(timed)
    measured = ratio_of(one, other)
    return Comparison(
        ratio=measured.ratio,
        ratio_ci95=measured.ci95,
        first_ms=median(one.per_call_s()) * 1e3,
        second_ms=median(other.per_call_s()) * 1e3,
        blocks=measured.pairs,
    )


def time_relative(
    side: ReferenceSide, reference: ReferenceSide, judge: JudgeProcess, *, settings: TimingSettings
) -> TrustedTiming:
    """Return time / reference's time of every pair of blocks; both sides are trusted modes of the reference."""
    ours, theirs = (_trusted(each, judge) for each in (side, reference))
    warm_up(ours, theirs, settings)
    run = AlternatingRun(ours, theirs, replace(settings, rule=settings.rule.without_giving_up()))
    for timed, each in ((ours, side), (theirs, reference)):
        _weigh_tickets(timed, each, run.planner)
    run.alternate()
    for each in (side, reference):
        each.cont()
    ratios = (a / b for a, b in zip(ours.per_call_s(), theirs.per_call_s(), strict=True))
    return TrustedTiming(values=tuple(ratios), was_busy=ours.has_waited() or theirs.has_waited())


def time_alone(side: ReferenceSide, judge: JudgeProcess, *, settings: TimingSettings) -> TrustedTiming:
    """Return the seconds per call of every block of one trusted side: a baseline."""
    timed = _trusted(side, judge)
    timed.renew()
    timed.warm_up(settings.warm_up)
    planner = planner_of(judge, settings.block_s, timed)
    _weigh_tickets(timed, side, planner)
    started = time.perf_counter()
    while True:
        plan = planner.draw(planner.count())
        timed.renew(plan.order)  # as before the blocks of an alternating run
        timed.run_block(plan)
        times = timed.per_call_s()
        low, high = median_interval(times)
        measured = PairedRatio(ratio=median(times), ci95=(low, high), pairs=len(times))
        if settings.rule.without_giving_up().is_done(measured, time.perf_counter() - started):
            return TrustedTiming(values=tuple(times), was_busy=timed.has_waited())


def _trusted(side: ReferenceSide, judge: JudgeProcess, observe: Callable[[], GpuState] = GpuState) -> TimedSide:
    return TimedSide(side=side, judge=judge, is_apart=side.is_apart, observe=observe)


def _weigh_tickets(timed: TimedSide, side: ReferenceSide, planner: BlockPlanner) -> None:
    """Note what a ticket costs a trusted side, and with it each candidate that runs the same loop; nobody else runs."""
    timed.cost = replace(timed.cost, ticket_s=usual_ticket_s(side.loop_empty, timed.judge, planner.most_calls))


def _timing(ours: TimedSide, theirs: TimedSide, measured: PairedRatio, floor: Floor | None, slowdown: float) -> Timing:
    times = [1e3 * t for t in ours.per_call_s()]
    median_ms = median(times)
    if floor is not None and median_ms < BELIEVED_FROM * floor.floor_ms:
        reason = (
            f"{median_ms:.4g} ms is below {BELIEVED_FROM} of the floor {floor.floor_ms:.4g} ms: at "
            f"{floor.bandwidth_gbps:.3g} GB/s the inputs and outputs cannot be moved once in that time"
        )
        raise Distrusted(ReasonCode.BELOW_FLOOR, reason)
    labels = [Label.LAUNCH_BOUND] if median_ms < LAUNCH_BOUND_MS else []
    labels += [Label.BUSY_MACHINE] if theirs.has_waited() else []
    labels += [Label.QUARANTINED] if measured.ratio > QUARANTINE_ABOVE else []
    calls = sum(b.calls for b in ours.blocks)
    return Timing(
        status=Status.OK,
        median_ms=median_ms,
        p10_ms=percentile(times, 10),
        p90_ms=percentile(times, 90),
        samples=len(times),
        reference_ms=1e3 * median(theirs.per_call_s()),
        speedup=measured.ratio,
        speedup_ci95=measured.ci95,
        witness_ms=1e3 * median(b.own_s for b in ours.blocks),
        page_faults_per_call=sum(b.page_faults for b in ours.blocks) / calls,
        labels=tuple(labels),
        clocks=usual_clocks([b.gpu for b in ours.blocks]),
        renewal_slowdown=slowdown or None,
    )
