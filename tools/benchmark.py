"""Timing in the parent: a candidate in alternation with eager PyTorch, two candidates with each other, or one side alone.

Rounds of A B B A blocks; the idle side is stopped. The score is the parent's clock over loops that rotate over more sets
than the last-level cache holds; the candidate's own clock is only a witness. Contents are secret and new for every
call where the sets allow (see lane.py), outputs are poisoned before a block and checked right after it while the
candidate is stopped. What a result rests on is in docs/timing.md.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from ridgeline.tools.arena import Arena, Side
from ridgeline.tools.counted import counted
from ridgeline.tools.gpu_monitor import SLOWED
from ridgeline.tools.lane import Block, Lane, WarmUp
from ridgeline.tools.process_usage import IDLE_SHARE
from ridgeline.tools.records import Comparison, Floor, Label, Purpose, ReasonCode, Status, Timing, Trial
from ridgeline.tools.statistics import (
    SMALLEST_SAMPLE_95,
    PairedRatio,
    StoppingRule,
    median_interval,
    paired_ratio,
    percentile,
)

WITNESS_RELATIVE = 0.10
WITNESS_ABSOLUTE_S = 5e-6
"""The two clocks agreed within 10 % + 5 us in 10 of 10 trials (docs/timing.md)."""
LATENCY_MARGIN = 2.0
BELOW_FLOOR = 0.95
"""Part of the floor below which a time is not believed: the ceiling itself is a measurement."""
LAUNCH_BOUND_MS = 0.05
QUARANTINE_SPEEDUP = 10.0
IDLE_TICKS_S = 0.02
"""/proc counts user and system time in ticks of 10 ms: two of them may be rounding."""
CLOCK_SPREAD = 0.03
"""A pair of blocks whose clock is further than this from the median does not count."""
BUSY_S = 1e-3
"""Next to nothing takes 20 to 100 us on an idle GPU; beside another process it waits for a time slice of 1 to 2 ms."""
RENEWAL_SLOWDOWN = 1.5
"""Work that waits on a GPU for the next block's inputs runs while the judge writes them, and shares its time slices. On
an H200 the average renewals of nine runs of honest kernels were within 3 % of each other."""
STALE_ERROR = 10.0
"""Relative error below which a wrong timed output looks like another call's result; an unwritten one is far above."""
ROUNDED_ERROR = 0.1
"""... and below which it looks like this call's result in looser arithmetic: fp8's errors are mostly below it, another
call's result has 0.2 and more, whose contents are mixtures of the same draws. Only the words of the rejection differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingSettings:
    """How much to measure; `for_purpose` gives the usual ones."""

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


Collect = Callable[[Sequence[int], int], None]
"""Brings the outputs of chosen sets, of a block of so many calls, into the arena; a native host wrote them there."""


class Distrusted(Exception):
    """A candidate's timing that must not count; caught by `time_candidate`, raised by `compare_sides`."""

    def __init__(self, status: Status, reason_code: ReasonCode, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason_code = reason_code


def time_candidate(
    candidate: Side,
    reference: Side,
    arena: Arena,
    *,
    settings: TimingSettings,
    floor: Floor | None,
    collect: Collect | None = None,
    request_s: float = 0.0,
    observe: Callable[[], dict[str, float]] = dict,
) -> Timing:
    """Return a candidate's time and its speedup over the reference, both from one alternating run.

    A timing that cannot be trusted comes back with its status and reason instead of figures. `collect` is the
    candidate's; `request_s` is what a request costs; `observe` gives a GPU's clocks.

    Raises whatever a side raises when it dies.
    """
    started = time.perf_counter()
    ours = Lane(side=candidate, arena=arena, is_tracked=True, request_s=request_s, observe=observe)
    theirs = Lane(side=reference, arena=arena, is_tracked=False, observe=observe)
    try:
        watch = _warm_up(ours, theirs, settings)
        inspect = Inspector(arena=arena, settings=settings, collects={id(candidate): collect}, threads=watch)
        measured = _alternate(ours, theirs, inspect, settings)
        _expect_idle(candidate, settings.idle_s)
        if arena.on_gpu:
            _expect_consistent(ours, theirs)
        _expect_drained(inspect)
        timing = _timing(ours, theirs, measured, floor, inspect.slowdown())
    except Distrusted as fault:
        timing = Timing(status=fault.status, reason_code=fault.reason_code, reason=str(fault))
    finally:
        reference.resume()
    return Timing.from_json(timing.to_json() | {"benchmark_s": time.perf_counter() - started})


def compare_sides(
    first: Side,
    second: Side,
    arena: Arena,
    *,
    settings: TimingSettings,
    collects: Sequence[Collect | None] = (None, None),
    request_s: float = 0.0,
) -> Comparison:
    """Return the ratio of two candidates' times (first / second) from one alternating run; `collects` are theirs.

    Raises:
        Distrusted: an output timed here was wrong, work went on between calls, or a clock disagreed.
    """
    lanes = [Lane(side=side, arena=arena, is_tracked=True, request_s=request_s) for side in (first, second)]
    threads = _warm_up(lanes[0], lanes[1], settings)
    by_side = {id(first): collects[0], id(second): collects[1]}
    inspect = Inspector(arena=arena, settings=settings, collects=by_side, threads=threads)
    _alternate(lanes[0], lanes[1], inspect, settings)
    _expect_drained(inspect)
    if arena.on_gpu:
        _expect_consistent(lanes[0], lanes[1])
        _expect_consistent(lanes[1], lanes[0])
    times = [lane.per_call_s() for lane in lanes]
    measured = _ratio(lanes[0], lanes[1])
    return Comparison(
        ratio=measured.ratio,
        ratio_ci95=measured.ci95,
        first_ms=median(times[0]) * 1e3,
        second_ms=median(times[1]) * 1e3,
        blocks=measured.pairs,
    )


def time_relative(side: Side, reference: Side, arena: Arena, *, settings: TimingSettings) -> list[float]:
    """Return side / reference of every pair of blocks of two trusted sides: modes of the reference."""
    ours, theirs = (Lane(side=each, arena=arena, is_tracked=False) for each in (side, reference))
    threads = _warm_up(ours, theirs, settings)
    inspect = Inspector(arena=arena, settings=settings, threads=threads)
    _alternate(ours, theirs, inspect, replace(settings, rule=settings.rule.without_giving_up()))
    for each in (side, reference):
        each.resume()
    return [a / b for a, b in zip(ours.per_call_s(), theirs.per_call_s(), strict=True)]


def time_alone(side: Side, arena: Arena, *, settings: TimingSettings) -> tuple[float, float, float, int]:
    """Return (median_ms, p10_ms, p90_ms, samples) of one trusted side: a baseline."""
    lane = Lane(side=side, arena=arena, is_tracked=False)
    lane.renew()
    lane.warm_up(settings.warm_up, block_s=settings.block_s)
    started = time.perf_counter()
    while True:
        lane.renew()  # as before the blocks of an alternating run
        lane.run_block(lambda sets: ())
        times = lane.per_call_s()
        low, high = median_interval(times)
        measured = PairedRatio(ratio=median(times), ci95=(low, high), pairs=len(times))
        if settings.rule.without_giving_up().is_done(measured, time.perf_counter() - started):
            return median(times) * 1e3, percentile(times, 10) * 1e3, percentile(times, 90) * 1e3, len(times)


# ------------------------------------------------------------------------------------------------- alternating run


@dataclass(slots=True, kw_only=True)
class Inspector:
    """Looks at a candidate right after each of its blocks, while it is stopped."""

    arena: Arena
    settings: TimingSettings
    threads: dict[int, int]  # by side's identity: its threads after the warm-up
    collects: dict[int, Collect | None] = field(default_factory=dict)  # by side's identity
    rng: random.Random = field(default_factory=random.SystemRandom)
    waits_s: list[float] = field(default_factory=list)  # for next to nothing on the device, right after each block
    slowdowns: dict[int, list[float]] = field(
        default_factory=dict
    )  # of a GPU renewing contents, by the side then timed

    def __post_init__(self) -> None:
        if self.settings.rng_seed is not None:
            self.rng = random.Random(self.settings.rng_seed)

    def slowdown(self) -> float:
        """Return how many times as long as usual a GPU took to renew contents; 0 on a CPU."""
        return max(median(of_a_side) for of_a_side in self.slowdowns.values())

    def choose(self, sets: Sequence[int]) -> tuple[int, ...]:
        """Return the sets to check after a block: the last call's, and random ones; with one check, either."""
        count = min(self.settings.checks, len(sets))
        if count == 1:
            return (sets[-1],) if self.rng.random() < 1 / 3 else (self.rng.choice(sets),)
        return (*self.rng.sample(sets[:-1], count - 1), sets[-1])

    def inspect(self, side: Side, chosen: Sequence[int], calls: int) -> None:
        """Compare the chosen outputs of a block and count threads; the side is paused and stays so."""
        self.waits_s.append(self.arena.waited_s())
        more = side.threads() - self.threads[id(side)]
        if more > 0:
            raise Distrusted(
                Status.UNTRUSTED,
                ReasonCode.NEW_THREAD,
                f"{counted(more, 'thread')} appeared after the warm-up; start every thread in the first call",
            )
        if collect := self.collects.get(id(side)):
            collect(chosen, calls)
        for index in chosen:
            if not self.arena.is_intact(index):
                reason = f"it wrote to an input of set {index}: inputs are read-only"
                raise Distrusted(Status.RUNTIME_ERROR, ReasonCode.INPUT_WRITTEN, reason)
            trial = self.arena.check(index)
            if not trial.passed:
                raise _wrong_output(trial, index)


def _wrong_output(trial: Trial, index: int) -> Distrusted:
    where = f"the timed output of set {index} is wrong (relative error {trial.rel_error:.3g}, allowed {trial.gate:.3g})"
    if trial.rel_error < ROUNDED_ERROR:
        reason = f"{where}: it was right when it was verified, so it rounds more, or leaves work out, when it is timed"
        return Distrusted(Status.WRONG, ReasonCode.PRECISION_TOO_LOW, reason)
    if math.isfinite(trial.rel_error) and trial.rel_error < STALE_ERROR:
        reason = f"{where}: it was right before the inputs changed in place, so a result is kept between calls"
        return Distrusted(Status.WRONG, ReasonCode.STALE_OUTPUT, reason)
    reason = f"{where}: not every call of a timed loop writes its whole output before it returns"
    return Distrusted(Status.UNTRUSTED, ReasonCode.TIMED_OUTPUT_WRONG, reason)


def _warm_up(ours: Lane, theirs: Lane, settings: TimingSettings) -> dict[int, int]:
    """Warm each side with the other stopped, watch the candidates idle, and return every side's thread count."""
    threads: dict[int, int] = {}
    ours.arena.renew()  # a reference may refuse the zeros that sets begin with
    for lane, other in ((theirs, ours), (ours, theirs)):
        other.side.pause()
        lane.warm_up(settings.warm_up, block_s=settings.block_s)
        threads[id(lane.side)] = lane.side.threads()
        if lane.is_tracked:
            _expect_idle(lane.side, settings.idle_s)
        lane.side.pause()
    return threads


def _alternate(ours: Lane, theirs: Lane, inspector: Inspector, settings: TimingSettings) -> PairedRatio:
    """Run A B B A rounds until the rule is met; return the median of their block's time / our block's, pair by pair.

    The two pairs of a round have opposite orders, so that a steady drift of the machine cancels in the median.
    """
    started = time.perf_counter()
    while True:
        for lane, other in ((ours, theirs), (theirs, ours), (theirs, ours), (ours, theirs)):
            _one_block(lane, other, inspector)
        measured = _ratio(theirs, ours)
        if settings.rule.is_done(measured, time.perf_counter() - started):
            return measured


def _ratio(numerator: Lane, denominator: Lane) -> PairedRatio:
    """Return the paired ratio of two lanes, without the pairs of a GPU whose clock was another than usual."""
    kept = steady_pairs(numerator.blocks, denominator.blocks)
    above, below = numerator.per_call_s(), denominator.per_call_s()
    return paired_ratio([above[i] for i in kept], [below[i] for i in kept])


def steady_pairs(first: Sequence[Block], second: Sequence[Block]) -> list[int]:
    """Return the pairs of blocks in which the multiprocessors' clock was within 3 % of its median; all without clocks.

    When that leaves too few for an interval, the clock wanders and nothing is dropped.
    """
    clocks = [(a.clocks.get("sm_mhz"), b.clocks.get("sm_mhz")) for a, b in zip(first, second, strict=True)]
    known = [mhz for pair in clocks for mhz in pair if mhz]
    if not known:
        return list(range(len(clocks)))
    usual = median(known)
    kept = [i for i, pair in enumerate(clocks) if all(not mhz or abs(mhz / usual - 1) <= CLOCK_SPREAD for mhz in pair)]
    return kept if len(kept) >= SMALLEST_SAMPLE_95 else list(range(len(clocks)))


def _one_block(lane: Lane, other: Lane, inspector: Inspector) -> None:
    if lane.is_tracked and not other.is_tracked:
        other.side.resume()  # the judge refills, and is the other side
    inspector.slowdowns.setdefault(id(lane.side), []).append(lane.renew())
    other.side.pause()
    chosen = lane.run_block(inspector.choose if lane.is_tracked else lambda sets: ())
    lane.side.pause()
    if not lane.is_tracked:
        return
    if not other.is_tracked:
        other.side.resume()
    inspector.inspect(lane.side, chosen, lane.plan.calls)


def _expect_idle(side: Side, idle_s: float) -> None:
    """Watch a side that may run and has nothing to do."""
    side.resume()
    before, started = side.cpu_seconds(), time.perf_counter()
    time.sleep(idle_s)
    used, waited = side.cpu_seconds() - before, time.perf_counter() - started
    if used > IDLE_SHARE * waited + IDLE_TICKS_S:
        raise Distrusted(
            Status.UNTRUSTED,
            ReasonCode.BACKGROUND_WORK,
            f"used {used / waited:.0%} of a core while no call was running: work goes on after a call has returned",
        )


def _expect_drained(inspector: Inspector) -> None:
    """Look at how long the judge waited for a GPU right after blocks and before them: it should have been alone on it."""
    slowdown = inspector.slowdown()
    if slowdown > RENEWAL_SLOWDOWN:
        reason = (
            f"while the next block's inputs were written the GPU was {slowdown:.3g} x as slow as when it is alone: "
        )
        raise Distrusted(Status.UNTRUSTED, ReasonCode.BACKGROUND_WORK, reason + "work goes on between calls")
    waited = median(inspector.waits_s)
    if waited > BUSY_S:
        reason = f"after a block the GPU was busy for {1e3 * waited:.3g} ms: work goes on after a call has returned"
        raise Distrusted(Status.UNTRUSTED, ReasonCode.BACKGROUND_WORK, reason)


def _expect_consistent(lane: Lane, other: Lane) -> None:
    """Compare the two clocks of a GPU: work that its events did not see was launched past the stream it was given.

    A CPU has one clock that counts, the parent's, and a machine's noise between the two must reject nobody. Here too: on
    a busy machine a request waits for a core, which only the parent's clock sees; the other side's requests of the
    same minutes say how long. A clock that lies does so in every block, so the block that agrees best decides.
    """
    per_call = lane.per_call_s()
    typical = median(per_call)
    waiting = LATENCY_MARGIN * max(0.0, other.latency_s()) / lane.plan.calls
    allowed = WITNESS_RELATIVE * typical + WITNESS_ABSOLUTE_S + waiting
    differences = [b.own_s - t for b, t in zip(lane.blocks, per_call, strict=True)]
    if min(abs(d) for d in differences) > allowed:
        own_ms, parent_ms = 1e3 * (typical + median(differences)), 1e3 * typical
        reason = f"its own clock says {own_ms:.4g} ms a call, the clock outside {parent_ms:.4g} ms"
        raise Distrusted(Status.UNTRUSTED, ReasonCode.WITNESS_DISAGREES, reason)


def _timing(ours: Lane, theirs: Lane, measured: PairedRatio, floor: Floor | None, slowdown: float) -> Timing:
    times = [1e3 * t for t in ours.per_call_s()]
    median_ms = median(times)
    if floor is not None and median_ms < BELOW_FLOOR * floor.floor_ms:
        reason = (
            f"{median_ms:.4g} ms is below {BELOW_FLOOR} of the floor {floor.floor_ms:.4g} ms: at "
            f"{floor.bandwidth_gbps:.3g} GB/s the inputs and outputs cannot be moved once in that time"
        )
        raise Distrusted(Status.UNTRUSTED, ReasonCode.BELOW_FLOOR, reason)
    labels = [Label.LAUNCH_BOUND] if median_ms < LAUNCH_BOUND_MS else []
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
        clocks=_usual_clocks(ours.blocks) | ({"renewal_slowdown": slowdown} if slowdown else {}),
    )


def _usual_clocks(blocks: Sequence[Block]) -> dict[str, float]:
    """Return the median of each figure; of a reason to slow down, its share of the blocks."""
    names = sorted({name for block in blocks for name in block.clocks})
    reasons = {n: sum(b.clocks.get(n, 0.0) for b in blocks) / len(blocks) for n in names if n.startswith(SLOWED)}
    figures = {n: median(b.clocks[n] for b in blocks if n in b.clocks) for n in names if not n.startswith(SLOWED)}
    return figures | reasons
