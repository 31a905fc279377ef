"""Timing in the parent: a candidate in alternation with eager PyTorch, two candidates with each other, or one side alone.

Blocks run in rounds of A B B A, and the idle side is stopped. The score is max(parent's clock - the usual cost of a
request, own clock) over loops on rotating sets. Contents are secret and new for every call where the sets allow (see
timed_side.py). Outputs are poisoned before a block and checked right after it, while the candidate is stopped.
docs/timing.md gives the reasons and the limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.gpu_state import GpuState, usual_clocks
from ridgeline.tools.machine.process_use import thread_count
from ridgeline.tools.measure.block_plan import BlockPlanner, most_calls
from ridgeline.tools.measure.distrust import (
    SINGLES,
    Distrusted,
    Inspector,
    expect_consistent,
    expect_drained,
    expect_even,
    expect_idle,
    expect_prompt,
    late_singles,
    slowdown_of,
)
from ridgeline.tools.measure.paired_blocks import ratio_of
from ridgeline.tools.measure.sides import Side
from ridgeline.tools.measure.statistics import (
    PairedRatio,
    StoppingRule,
    median_interval,
    percentile,
)
from ridgeline.tools.measure.timed_side import Collect, TimedSide, WarmUp
from ridgeline.tools.measure.unsettled import UNSETTLED, Unsettled
from ridgeline.tools.records.finding import faults_of
from ridgeline.tools.records.results import Comparison, Floor, Timing
from ridgeline.tools.records.vocabulary import Label, Purpose, ReasonCode, Status

BELOW_FLOOR = 0.95
"""Part of the floor below which a time is not believed: the ceiling is a measurement too."""
LAUNCH_BOUND_MS = 0.05
QUARANTINE_SPEEDUP = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingSettings:
    """Extent of one timing; `for_purpose` gives the usual settings."""

    rule: StoppingRule
    warm_up: WarmUp = field(default_factory=WarmUp)
    block_s: float = 0.012  # what a block should last
    checks: int = 1  # outputs compared after each candidate block
    idle_s: float = 0.1  # how long a candidate is watched while it has nothing to do
    rng_seed: int | None = None  # which outputs are checked; None: unpredictable

    @classmethod
    def for_purpose(cls, purpose: Purpose) -> TimingSettings:
        """Return the settings of a purpose: search and tune take 2 to 3 s for a kernel of 1 ms, certify about 10 s."""
        if purpose is Purpose.CERTIFY:
            rule = StoppingRule(smallest=20, largest=200, time_s=8.0, patience_s=40.0)
            return cls(rule=rule, block_s=0.03, checks=3, idle_s=0.5)
        if purpose is Purpose.EVALUATE:
            return cls(rule=StoppingRule(smallest=10, largest=60, time_s=5.0, patience_s=30.0), checks=2)
        rule = StoppingRule(smallest=10, largest=24, time_s=2.0, patience_s=10.0, give_up_below=0.8)
        return cls(rule=rule)


def time_candidate(
    candidate: Side,
    reference: Side,
    judge: JudgeProcess,
    *,
    settings: TimingSettings,
    floor: Floor | None,
    collect: Collect | None = None,
    request_s: float = 0.0,
    observe: Callable[[], GpuState] = GpuState,
) -> Timing:
    """Return a candidate's time and its speedup over the reference, both from one alternating run.

    One that cannot be trusted has a status and a reason instead of figures. `collect` brings the candidate's outputs into
    the judge's memory, `request_s` is the usual cost of a request, `observe` gives a GPU's state.

    Raises whatever a side raises when it dies.
    """
    started = time.perf_counter()
    ours = TimedSide(
        side=candidate, judge=judge, is_tracked=True, collect=collect, request_s=request_s, observe=observe
    )
    theirs = TimedSide(side=reference, judge=judge, is_tracked=False, observe=observe)
    try:
        _warm_up(ours, theirs, settings)
        run = _Run(ours, theirs, settings)
        measured = run.alternate()
        run.expect_even()
        run.expect_fresh()
        expect_idle(candidate, settings.idle_s)
        expect_consistent(ours, theirs)
        slowdown = slowdown_of(ours, theirs)
        expect_drained(slowdown, ours, theirs)
        timing = _timing(ours, theirs, measured, floor, slowdown)
        expect_prompt(ours)
    except Distrusted as fault:
        timing = Timing.failed(fault.finding)
    finally:
        reference.cont()
    return replace(timing, benchmark_s=time.perf_counter() - started)


def compare_sides(
    first: Side,
    second: Side,
    judge: JudgeProcess,
    *,
    settings: TimingSettings,
    collects: Sequence[Collect | None] = (None, None),
    request_s: float = 0.0,
    observe: Callable[[], GpuState] = GpuState,
) -> Comparison:
    """Return the ratio of two candidates' times (first / second) from one alternating run.

    `collects` belong to the two candidates in order; `request_s` and `observe` are as in `time_candidate`.

    Raises:
        Distrusted: an output timed here was wrong, work went on between calls, or a clock disagreed. `contender` says
            whose, where it is not the GPU that either left busy. What a side raises when it dies says so too.
    """
    one, other = (
        TimedSide(
            side=each,
            judge=judge,
            is_tracked=True,
            contender=i,
            collect=collect,
            request_s=request_s,
            observe=observe,
        )
        for i, (each, collect) in enumerate(zip((first, second), collects, strict=True))
    )
    _warm_up(one, other, settings)
    run = _Run(one, other, settings)
    run.alternate()
    run.expect_even()
    run.expect_fresh()
    for timed in (one, other):
        with faults_of(timed.contender):
            expect_idle(timed.side, settings.idle_s)
            timed.side.stop()
    expect_drained(slowdown_of(one, other), one, other)
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


def time_relative(side: Side, reference: Side, judge: JudgeProcess, *, settings: TimingSettings) -> list[float]:
    """Return time / reference's time of every pair of blocks; both sides are trusted modes of the reference."""
    ours, theirs = (TimedSide(side=each, judge=judge, is_tracked=False) for each in (side, reference))
    _warm_up(ours, theirs, settings)
    _Run(ours, theirs, replace(settings, rule=settings.rule.without_giving_up())).alternate()
    for each in (side, reference):
        each.cont()
    return [a / b for a, b in zip(ours.per_call_s(), theirs.per_call_s(), strict=True)]


def time_alone(side: Side, judge: JudgeProcess, *, settings: TimingSettings) -> tuple[float, float, float, int]:
    """Return (median_ms, p10_ms, p90_ms, samples) of one trusted side: a baseline."""
    timed = TimedSide(side=side, judge=judge, is_tracked=False)
    timed.renew()
    timed.warm_up(settings.warm_up)
    planner = _planner(judge, settings, timed)
    started = time.perf_counter()
    while True:
        plan = planner.draw(planner.count())
        timed.renew(plan.order)  # as before the blocks of an alternating run
        timed.run_block(plan)
        times = timed.per_call_s()
        low, high = median_interval(times)
        measured = PairedRatio(ratio=median(times), ci95=(low, high), pairs=len(times))
        if settings.rule.without_giving_up().is_done(measured, time.perf_counter() - started):
            return median(times) * 1e3, percentile(times, 10) * 1e3, percentile(times, 90) * 1e3, len(times)


# ------------------------------------------------------------------------------------------------- alternating run


def _planner(judge: JudgeProcess, settings: TimingSettings, *sides: TimedSide) -> BlockPlanner:
    """Return who draws the blocks of warm sides."""
    n_sets = judge.problem.n_sets
    most = most_calls([timed.usual_call_s for timed in sides], n_sets, block_s=settings.block_s)
    return BlockPlanner(n_sets=n_sets, most_calls=most)


def _warm_up(ours: TimedSide, theirs: TimedSide, settings: TimingSettings) -> None:
    """Warm each side with the other stopped, count its threads, and watch the candidates idle."""
    ours.renew()  # a reference may refuse the zeros that sets begin with
    for timed, other in ((theirs, ours), (ours, theirs)):
        with faults_of(other.contender):
            other.side.stop()
        with faults_of(timed.contender):
            timed.warm_up(settings.warm_up)
            timed.threads = thread_count(timed.side.pid)
            if timed.is_tracked:
                expect_idle(timed.side, settings.idle_s)
            timed.side.stop()


class _Run:
    """The alternating run of two warm sides."""

    def __init__(self, ours: TimedSide, theirs: TimedSide, settings: TimingSettings) -> None:
        self.inspector = Inspector(judge=ours.judge, checks=settings.checks, rng_seed=settings.rng_seed)
        self._ours, self._theirs = ours, theirs
        self._rule = settings.rule
        self._planner = _planner(ours.judge, settings, ours, theirs)
        self._unsettled = [
            (Unsettled(timed=timed, planner=self._planner), other) for timed, other in self._foresighted()
        ]

    def alternate(self) -> PairedRatio:
        """Run A B B A rounds until the rule is met; return the median over pairs of their block's time / our block's.

        The two pairs of a round have opposite orders, so that a steady drift of the machine cancels in the median.
        """
        started = time.perf_counter()
        while True:
            for first, second in ((self._ours, self._theirs), (self._theirs, self._ours)):
                self._maybe_singles()
                calls = self._planner.count()
                for timed, other in ((first, second), (second, first)):
                    self._block(timed, other, calls)
            measured = ratio_of(self._theirs, self._ours)
            if self._rule.is_done(measured, time.perf_counter() - started):
                return measured

    def expect_even(self) -> None:
        """Check that neither side works ahead (see distrust.py), or raise Distrusted."""
        for timed, other in self._foresighted():
            while len(timed.singles) < SINGLES:
                self._block(timed, other, 1, is_single=True)
            if late_singles(timed) <= SINGLES // 2:
                continue
            for side in (timed, other):  # a busy machine makes blocks late on both sides
                side.singles.clear()
            for _ in range(2 * SINGLES):
                self._block(timed, other, 1, is_single=True)
                self._block(other, timed, 1, is_single=True)
            with faults_of(timed.contender):
                expect_even(timed, other)

    def expect_fresh(self) -> None:
        """Check that the calls of a block work on what lies there when they are called: see unsettled.py.

        Raises:
            Distrusted: they do not.
        """
        for looks, other in self._unsettled:
            self._look(looks, other, UNSETTLED)

    def _look(self, looks: Unsettled, other: TimedSide, wanted: int) -> None:
        """Run blocks whose contents change until so many have changed in time."""
        while looks.is_open(wanted):
            with faults_of(other.contender):
                other.side.stop()  # the judge goes on when it is asked
            plan = looks.plan()
            looks.timed.renew(plan.order)
            with faults_of(looks.timed.contender):
                looks.look(plan)

    def _maybe_singles(self) -> None:
        """Run a block of one call now and then, so that a candidate that meets one block more cannot tell."""
        for timed, other in self._foresighted():
            if len(timed.singles) < SINGLES and self.inspector.rng.random() < 1 / 2:
                self._block(timed, other, 1, is_single=True)
        for looks, other in self._unsettled:
            if looks.timed.blocks and self.inspector.rng.random() < 1 / 2:
                self._look(looks, other, min(looks.seen + 1, UNSETTLED))

    def _foresighted(self) -> list[tuple[TimedSide, TimedSide]]:
        """Return the candidates that could work ahead, each with the other side: none where a block is one call."""
        sides = ((self._ours, self._theirs), (self._theirs, self._ours))
        return [(timed, other) for timed, other in sides if timed.is_tracked and self._planner.most_calls > 1]

    def _block(self, timed: TimedSide, other: TimedSide, calls: int, *, is_single: bool = False) -> None:
        if timed.is_tracked and not other.is_tracked:
            other.side.cont()  # the judge refills, and is the other side
        plan = self._planner.draw(calls)
        timed.prepare_block(plan, is_single=is_single)
        with faults_of(other.contender):
            other.side.stop()
        with faults_of(timed.contender):
            timed.run_block(plan, is_single=is_single)
            timed.side.stop()
            if not timed.is_tracked:
                return
            if not other.is_tracked:
                other.side.cont()
            self.inspector.inspect(timed, plan)


def _timing(ours: TimedSide, theirs: TimedSide, measured: PairedRatio, floor: Floor | None, slowdown: float) -> Timing:
    times = [1e3 * t for t in ours.per_call_s()]
    median_ms = median(times)
    if floor is not None and median_ms < BELOW_FLOOR * floor.floor_ms:
        reason = (
            f"{median_ms:.4g} ms is below {BELOW_FLOOR} of the floor {floor.floor_ms:.4g} ms: at "
            f"{floor.bandwidth_gbps:.3g} GB/s the inputs and outputs cannot be moved once in that time"
        )
        raise Distrusted(ReasonCode.BELOW_FLOOR, reason)
    labels = [Label.LAUNCH_BOUND] if median_ms < LAUNCH_BOUND_MS else []
    labels += [Label.BUSY_MACHINE] if theirs.has_waited() else []
    labels += [Label.QUARANTINED] if measured.ratio > QUARANTINE_SPEEDUP else []
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
        clocks=usual_clocks([b.gpu for b in ours.blocks]) | ({"renewal_slowdown": slowdown} if slowdown else {}),
    )
