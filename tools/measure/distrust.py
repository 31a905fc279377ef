"""Checks during timing; each raises Distrusted (in the parent; no torch here).

After each block, while the candidate is stopped: its outputs are compared, its threads counted, and the GPU is asked
whether it is at rest. After the last block: the two clocks are compared, the idle process is watched, and the time of
collecting outputs is held against that of copying.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from ridgeline.tools.judge.messages import Check, FindUnasked, VerifyInputs
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.measure.behind_the_clock import late_threads, work_when_timed
from ridgeline.tools.measure.block_plan import BlockKind, BlockPlan
from ridgeline.tools.measure.sides import Side
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.measure.timed_side import TimedCandidate, TimedSide
from ridgeline.tools.records.finding import CandidateFault
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.trial_names import trial_of, trial_of_kind
from ridgeline.tools.records.vocabulary import ReasonCode, Role
from ridgeline.tools.wording import counted

WITNESS_RELATIVE = 0.10
WITNESS_ABSOLUTE_S = 5e-6
LATENCY_MARGIN = 2.0
BUSY_S = 1e-3
"""A request of the judge's that does next to nothing takes 24 us on an idle GPU and took up to 0.54 ms; beside another
process it waits for a time slice of 1 to 2 ms. The median over all blocks decides."""
RENEWAL_SLOWDOWN = 1.5
"""Work that waits on a GPU for the next block's inputs runs while the judge writes them, and takes time slices of the
judge. Where the judge turns out to be slow with no candidate there, that pace is what its renewals are held against. On an
H200 those beside twenty honest kernels took 0.93 to 1.01 times the usual (docs/measurements.md)."""
REFERENCE_SLOWDOWN = 1.5
"""Work that a candidate left on a GPU runs beside the reference too, which then takes longer than before the candidate's
first call."""
STALE_ERROR = 10.0
"""Relative error below which a wrong timed output may be another call's result; an unwritten one is far above."""
UNASKED = 2
"""Sets without a call whose outputs are looked at after each block."""
ROUNDED_ERROR = 0.1
"""Relative error below which a wrong timed output looks like this call's result in looser arithmetic. fp8's errors are
mostly below this value; another call's result, whose inputs are mixtures of the same draws, has 0.2 and more. Only the
words of the rejection differ."""


class Distrusted(CandidateFault):
    """A candidate's timing that must not count; `compare_sides` raises it, `time_candidate` only a `SlowRenewals`."""


class SlowRenewals(Distrusted):
    """The judge renewed contents more slowly beside a candidate than alone, by which a GPU tells of work between calls."""

    def __init__(self, slowdown: float) -> None:
        """Say how many times as slow as usual it was, in the median."""
        self._slowdown = slowdown
        reason = (
            f"while the next block's inputs were written the GPU was {slowdown:.3g} x as slow as when it is alone: "
            "work goes on between calls"
        )
        super().__init__(ReasonCode.BACKGROUND_WORK, reason)

    def is_the_machines(self, slowdown_alone: float) -> bool:
        """Return whether it is the machine that became slower: `slowdown_alone` is how many times, with no candidate there."""
        return self._slowdown <= RENEWAL_SLOWDOWN * slowdown_alone


@dataclass(slots=True, kw_only=True)
class Inspector:
    """Checks a candidate right after each of its blocks, while it is stopped."""

    judge: JudgeProcess
    checks: int  # outputs compared after each block
    rng: random.Random = field(default_factory=random.SystemRandom)

    def choose(self, sets: Sequence[int]) -> tuple[int, ...]:
        """Return the sets to check after a block: random ones and the last call's; with one check, one of either."""
        count = min(self.checks, len(sets))
        if count == 1:
            return (sets[-1],) if self.rng.random() < 1 / 3 else (self.rng.choice(sets),)
        return (*self.rng.sample(sets[:-1], count - 1), sets[-1])

    def with_trial_contents(
        self, chosen: tuple[int, ...], timed: TimedCandidate, sets: Sequence[int], *, all_of_them: bool = False
    ) -> tuple[int, ...]:
        """Return the sets to check: the chosen ones and, of those used, one with the contents of a trial, or all."""
        used = {index: kind for index, kind in timed.trial_sets.items() if index in sets}
        if not used:
            return chosen
        told = tuple(used) if all_of_them else (timed.coverage.rarest(used, self.rng),)
        return tuple(dict.fromkeys((*chosen, *told)))

    def inspect(self, timed: TimedCandidate, plan: BlockPlan) -> None:
        """Compare outputs of a side's last block and count threads; the side is paused and stays so.

        They are chosen now: nothing that a candidate could have read tells which. After an extra block all are compared
        whose contents are those of a trial.
        """
        is_extra = plan.kind is BlockKind.EXTRA
        by_chance = () if timed.trial else self.choose(plan.sets)  # a trial's parameters are its own inputs' alone
        chosen = self.with_trial_contents(by_chance, timed, plan.sets, all_of_them=is_extra)
        more = late_threads(timed.side.pid, timed.threads)
        if more:
            raise Distrusted(
                ReasonCode.NEW_THREAD,
                f"{counted(more, 'thread')} appeared after the warm-up; start every thread in the first call",
            )
        if timed.collect:
            timed.collect(chosen, plan.sets)
        for index in chosen:
            if not self.judge.ask(VerifyInputs(set_index=index)).intact:
                reason = f"it wrote to an input of set {index}: inputs are read-only"
                raise Distrusted(ReasonCode.INPUT_WRITTEN, reason)
            trial = self.judge.ask(Check(set_index=index))
            if not trial.passed:
                raise wrong_output(trial, index, contents_words(timed.trial_sets.get(index, ""), timed.parameter_kind))
        timed.coverage.note(chosen, timed.trial_sets, timed.parameter_kind)
        self._expect_unasked(plan.unasked)
        if timed.collect:
            timed.side.rest()  # every output has been looked at, and the contents that come next do not exist yet

    def _expect_unasked(self, sets: Sequence[int]) -> None:
        """Check that outputs of sets that no call had are as they were."""
        looked_at = tuple(self.rng.sample(sets, min(len(sets), UNASKED)))
        for index in self.judge.ask(FindUnasked(sets=looked_at)).written:
            raise Distrusted(
                ReasonCode.WORKED_AHEAD,
                f"it wrote the output of set {index}, which no call of the timed loop was given: each call works on its own "
                "arguments alone",
            )


def contents_words(inputs: str, parameters: str) -> str:
    """Return the kinds of contents that a set had, "inputs as in crowded_high"; "" where all were nominal."""
    kinds = ((Role.INPUT, trial_of_kind(inputs) or trial_of(inputs)), (Role.PARAMETER, parameters.partition(":")[2]))
    return " and ".join(f"{role}s as in {trial}" for role, trial in kinds if trial)


def wrong_output(trial: Trial, index: int, contents: str = "") -> Distrusted:
    """Return the fault for a set's wrong timed output; the size of the error decides the code."""
    of_contents = f", with {contents}," if contents else ""
    where = f"the timed output of set {index}{of_contents} is wrong ({error_words(trial)})"
    if trial.rel_error < ROUNDED_ERROR:
        reason = (
            f"{where}: it was right when it was verified, so its error grows with such contents, or it rounds more, or "
            "leaves work out, when it is timed"
        )
        return Distrusted(ReasonCode.PRECISION_TOO_LOW, reason)
    if trial.rel_error < STALE_ERROR:
        kept = "a result is kept between calls, while inputs change in place"
        causes = (
            f"it is wrong for such contents, or {kept}" if contents else f"{kept}, or it is wrong for some contents"
        )
        reason = f"{where}: it was right when it was verified, so {causes}"
        return Distrusted(ReasonCode.STALE_OUTPUT, reason)
    reason = f"{where}: not every call of a timed loop writes its whole output before it returns"
    return Distrusted(ReasonCode.TIMED_OUTPUT_WRONG, reason)


def error_words(trial: Trial) -> str:
    """Return the figure of a wrong output that broke its limit, and the limit: "a row's error 3e-4, gate 4e-5 (7.5 x)"."""
    if trial.nearest is not None and not trial.nearest.is_within:
        return trial.nearest.in_words()
    return f"relative error {trial.rel_error:.3g}, allowed {trial.gate:.3g}"


def expect_idle(side: Side, idle_s: float) -> None:
    """Let a side run without a request and watch its processor time.

    Raises:
        Distrusted: it is at work.
    """
    found = work_when_timed(side, idle_s)
    if found is not None:
        raise Distrusted(found.code, found.reason)


def slowdown_of(*sides: TimedSide) -> float:
    """Return how many times as long as usual a GPU took to renew contents beside a side, in its median; 0 on a CPU.

    The side beside which it took longest counts.
    """
    return max(median(timed.slowdowns) for timed in sides)


def expect_drained(slowdown: float, *sides: TimedSide) -> None:
    """Check that the judge was alone on the GPU right after a candidate's blocks, and before all blocks.

    `slowdown` is that of its renewals before them. Each side's median wait counts alone: beside an honest side's waits
    half of all would be short.

    Raises:
        SlowRenewals: the judge renewed contents more slowly than usual.
        Distrusted: it had to wait, or PyTorch takes longer than before the candidate's first call.
    """
    if slowdown > RENEWAL_SLOWDOWN:
        raise SlowRenewals(slowdown)
    for timed in sides:
        waited = median(timed.waits_s)
        if waited > BUSY_S:
            when = "after a block" if timed.is_candidate else "before a block of PyTorch's"
            reason = f"{when} the GPU was busy for {1e3 * waited:.3g} ms: work goes on after a call has returned"
            raise Distrusted(ReasonCode.BACKGROUND_WORK, reason)
        if not timed.is_candidate:
            _expect_undisturbed(timed)


def _expect_undisturbed(reference: TimedSide) -> None:
    """Check that the reference takes no longer a call on a GPU than in its warm-up, before the candidate's first call.

    On a CPU other programs slow either down, and a stopped candidate cannot.

    Raises:
        Distrusted: it takes much longer.
    """
    if not TIMED_DEVICES[reference.judge.device_kind].has_own_clock:
        return
    call_s, usual_s = median(reference.per_call_s()), reference.usual_call_s
    if call_s > REFERENCE_SLOWDOWN * usual_s + WITNESS_ABSOLUTE_S:
        reason = f"PyTorch takes {1e3 * call_s:.4g} ms a call beside it, {1e3 * usual_s:.4g} ms before its first call: "
        raise Distrusted(ReasonCode.BACKGROUND_WORK, reason + "work goes on after a call has returned")


def expect_consistent(timed: TimedSide, other: TimedSide) -> None:
    """Compare the candidate's clock on a GPU (CUDA events) with the parent's.

    They differ when work was launched past the stream that the candidate was given. A CPU's timing counts by the
    parent's clock alone, so there this check is left out.

    A machine's noise must reject nobody. On a busy machine a request waits for a core, which only the parent's clock
    sees; the other side's requests of the same minutes say how long. A clock that lies does so in every block, so the
    block that agrees best decides.

    Of the parent's clock only what a request costs at the least is taken off here. What it usually costs was measured once,
    and on a machine that was busy then it can be as long as a block, which would leave the candidate's own clock alone.

    Raises:
        Distrusted: the clocks disagree in every block.
    """
    if not TIMED_DEVICES[timed.judge.device_kind].has_own_clock:
        return
    least_s = timed.least_request_s()
    per_call = [timed.waited_for_s(block, least_s) for block in timed.blocks]
    typical = median(per_call)
    waiting = LATENCY_MARGIN * max(0.0, other.latency_s()) / median(b.calls for b in timed.blocks)
    allowed = WITNESS_RELATIVE * typical + WITNESS_ABSOLUTE_S + waiting
    differences = [b.own_s - t for b, t in zip(timed.blocks, per_call, strict=True)]
    if min(abs(d) for d in differences) > allowed:
        own_ms, parent_ms = 1e3 * (typical + median(differences)), 1e3 * typical
        reason = f"its own clock says {own_ms:.4g} ms a call, the clock outside {parent_ms:.4g} ms"
        raise Distrusted(ReasonCode.WITNESS_DISAGREES, reason)


def expect_prompt(timed: TimedCandidate) -> None:
    """Check that no output was made only when it was collected.

    Raises:
        Distrusted: collecting took longer than copying explains.
    """
    if timed.collect and (complaint := timed.collect.complaint(median(timed.per_call_s()))):
        raise Distrusted(ReasonCode.BACKGROUND_WORK, complaint)
