"""The alternating run of two sides: A B B A blocks, and beside them blocks that do not count, each for one suspicion.

A block of one call shows work that was done ahead, one whose contents change what is kept within a block, an extra one the
kinds of contents that no other block had. They come now and then, so that a candidate cannot tell them from the others.
"""

from __future__ import annotations

import time
from collections import Counter

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.process_use import thread_count
from ridgeline.tools.measure.block_plan import LEAST_CALLS, BlockKind, BlockPlanner, most_calls
from ridgeline.tools.measure.changing_blocks import ChangingBlocks
from ridgeline.tools.measure.coverage import Coverage
from ridgeline.tools.measure.distrust import Inspector, expect_idle
from ridgeline.tools.measure.paired_blocks import ratio_of
from ridgeline.tools.measure.singles import (
    LATE_LOOKS,
    MOST_LOOKS,
    SINGLES,
    Look,
    has_late_singles,
    look,
    undecided,
    unexplained,
    worked_ahead,
)
from ridgeline.tools.measure.statistics import PairedRatio
from ridgeline.tools.measure.timed_side import TimedCandidate, TimedSide
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.finding import faults_of

_COVERED_SHARE = 1 / 4
"""Share of the pairs of blocks before which kinds of contents that are due are asked for; at the end all of them are."""
_TRIALS_SHARE = 3 / 4
"""Share of the pairs of blocks before which whole trials are asked for, while some are due."""
_LAST_SINGLES = 2
"""Blocks of one call that come when all blocks that count are over."""
_FURTHER_SHARE = 1 / 4
"""Share of the pairs of blocks before which blocks of one call, and blocks whose contents change, go on coming once those that
are wanted before the end have come: nothing tells that none will follow."""
_SHORTER = 2.0
"""Times that a candidate's calls are shorter than in its warm-up before blocks have more of them."""


def planner_of(judge: JudgeProcess, block_s: float, *sides: TimedSide) -> BlockPlanner:
    """Return who draws the blocks of warm sides."""
    n_sets = judge.problem.n_sets
    most = most_calls([timed.usual_call_s for timed in sides], n_sets, block_s=block_s)
    return BlockPlanner(n_sets=n_sets, most_calls=most)


def warm_up(ours: TimedSide, theirs: TimedSide, settings: TimingSettings) -> None:
    """Warm each side with the other stopped, count its threads, and watch the candidates idle."""
    ours.renew()  # a reference may refuse the zeros that sets begin with
    for timed, other in ((theirs, ours), (ours, theirs)):
        with faults_of(other.contender):
            other.side.stop()
        with faults_of(timed.contender):
            timed.warm_up(settings.warm_up)
            timed.threads = thread_count(timed.side.pid)
            if timed.is_candidate:
                expect_idle(timed.side, settings.idle_s)
            timed.side.stop()


class AlternatingRun:
    """The alternating run of two warm sides."""

    def __init__(self, ours: TimedSide, theirs: TimedSide, settings: TimingSettings) -> None:
        self.inspector = Inspector(judge=ours.judge, checks=settings.checks)
        self._ours, self._theirs = ours, theirs
        self._rule = settings.rule
        self._settings = settings
        self.planner = planner_of(ours.judge, settings.block_s, ours, theirs)
        for timed, _ in self._candidates():
            timed.coverage = Coverage(kinds=ours.judge.problem.timed_kinds, least=self._least_graded)
        self._changing = [
            (ChangingBlocks(timed=timed, planner=self.planner), other) for timed, other in self._candidates()
        ]

    def alternate(self) -> PairedRatio:
        """Run A B B A rounds until the rule is met; return the median over pairs of their block's time / our block's.

        The two pairs of a round have opposite orders, so that a steady drift of the machine cancels in the median.
        """
        started = time.perf_counter()
        while True:
            for first, second in ((self._ours, self._theirs), (self._theirs, self._ours)):
                calls, place = self.planner.count(), self.inspector.rng.randrange(2)
                for number, (timed, other) in enumerate(((first, second), (second, first))):
                    if number == place:  # before either: no order of blocks tells which ones count
                        self._maybe_uncounted()
                    self._block(timed, other, calls)
            self._lengthen_blocks()
            measured = ratio_of(self._theirs, self._ours)
            if self._rule.is_done(measured, time.perf_counter() - started):
                return measured

    def _lengthen_blocks(self) -> None:
        """Draw blocks of more calls where a candidate's are far shorter now than in its warm-up, which may mislead.

        In a block of few short calls nothing could change in time.
        """
        shorter = [timed for timed, _ in self._candidates() if _SHORTER * timed.call_now_s < timed.usual_call_s]
        if not shorter:
            return
        for timed in shorter:
            timed.usual_call_s = timed.call_now_s
        planned = planner_of(self._ours.judge, self._settings.block_s, self._ours, self._theirs)
        self.planner.most_calls = max(self.planner.most_calls, planned.most_calls)
        for timed, _ in self._candidates():
            timed.coverage.least = self._least_graded

    @property
    def _least_graded(self) -> int:
        return self._settings.checks if self.planner.most_calls > 1 else 1

    def expect_even(self) -> None:
        """Check that neither side works ahead: see singles.py.

        A machine's noise must reject nobody: a side that is late is looked at again, both sides in turns, and one look in
        which it is even decides for it. Work done ahead shows in every look. Where nothing shows in MOST_LOOKS, the
        machine is at fault if other programs were at work in one of them, else the side.

        Raises:
            Distrusted: it does, in LATE_LOOKS looks, or it hides whether it does.
            MachineBusyError: the machine is too busy to tell.
        """
        for timed, other in self._able_to_work_ahead():
            for _ in range(max(_LAST_SINGLES, SINGLES - len(timed.singles))):
                self._block(timed, other, 1, BlockKind.SINGLE)
            if has_late_singles(timed):
                self._look_again(timed, other)

    def _look_again(self, timed: TimedSide, other: TimedSide) -> None:
        seen: Counter[Look] = Counter()
        for _ in range(MOST_LOOKS):
            self._run_singles(timed, other)
            seen[look(timed, other)] += 1
            if seen[Look.EVEN]:
                return
            if seen[Look.AHEAD] == LATE_LOOKS:
                with faults_of(timed.contender):
                    raise worked_ahead(timed)
        if seen[Look.UNDECIDED]:
            raise undecided(timed)
        with faults_of(timed.contender):
            raise unexplained(timed)

    def _run_singles(self, timed: TimedSide, other: TimedSide) -> None:
        """Run blocks of one call anew, of both sides in turns with the looked-at side's long ones."""
        for blocks in (timed.singles, other.singles, timed.beside):
            blocks.clear()
        for _ in range(2 * SINGLES):
            self._block(timed, other, 1, BlockKind.SINGLE)
            self._block(other, timed, 1, BlockKind.SINGLE)
            self._block(timed, other, max(LEAST_CALLS, self.planner.count()), BlockKind.BESIDE)

    def expect_every_kind(self) -> None:
        """Grade outputs on the kinds of contents that no other block had, or too few of them: see coverage.py."""
        for timed, other in self._candidates():
            while due := timed.coverage.due():
                self._cover(timed, other, self._one_of(timed.coverage.due_trials()) or due)

    def _one_of(self, trials: tuple[str, ...]) -> tuple[str, ...]:
        return (self.inspector.rng.choice(trials),) if trials else ()

    def _cover(self, timed: TimedCandidate, other: TimedSide, wanted: tuple[str, ...]) -> None:
        """Run a block of wanted kinds of contents; it does not count."""
        graded = timed.coverage.count(wanted)
        self._block(timed, other, self.planner.count(), BlockKind.EXTRA, wanted=wanted)
        if timed.coverage.count(wanted) == graded:
            raise EngineError("the judge gives no set the contents that it was asked for")

    def expect_fresh(self) -> None:
        """Check that the calls of a block work on what lies there when they are called: see changing_blocks.py.

        Raises:
            Distrusted: they do not.
        """
        for blocks, other in self._changing if self.planner.most_calls > 1 else ():
            blocks.are_last = True
            self._look(blocks, other, blocks.n_wanted)

    def _look(self, blocks: ChangingBlocks, other: TimedSide, wanted: int) -> None:
        """Run blocks whose contents change until so many have changed in time."""
        while blocks.is_open(wanted):
            self._change(blocks, other)

    def _change(self, blocks: ChangingBlocks, other: TimedSide) -> None:
        """Run one block whose contents change."""
        with faults_of(other.contender):
            other.side.stop()  # the judge goes on when it is asked
        plan = blocks.plan()
        blocks.timed.renew(plan.order)
        with faults_of(blocks.timed.contender):
            blocks.run(plan)

    def _maybe_uncounted(self) -> None:
        """Run blocks that do not count now and then, so that a candidate cannot tell which block it is in."""
        for timed, other in self._able_to_work_ahead():
            is_wanted = len(timed.singles) < SINGLES - _LAST_SINGLES
            if self.inspector.rng.random() < (1 / 2 if is_wanted else _FURTHER_SHARE):
                self._block(timed, other, 1, BlockKind.SINGLE)
        for timed, other in self._candidates():
            trials, due = timed.coverage.due_trials(), timed.coverage.due()
            if timed.blocks and trials and self.inspector.rng.random() < _TRIALS_SHARE:
                self._cover(timed, other, self._one_of(trials))
            elif timed.blocks and due and self.inspector.rng.random() < _COVERED_SHARE:
                self._cover(timed, other, due)
        for blocks, other in self._changing if self.planner.most_calls > 1 else ():
            is_wanted = blocks.is_open(blocks.n_changed + 1)
            if not blocks.timed.blocks or self.inspector.rng.random() >= (1 / 2 if is_wanted else _FURTHER_SHARE):
                continue
            if is_wanted:
                self._look(blocks, other, blocks.n_changed + 1)
            elif blocks.has_room:
                self._change(blocks, other)

    def _candidates(self) -> list[tuple[TimedCandidate, TimedSide]]:
        """Return the candidates, each with the other side."""
        sides = ((self._ours, self._theirs), (self._theirs, self._ours))
        return [(timed, other) for timed, other in sides if isinstance(timed, TimedCandidate)]

    def _able_to_work_ahead(self) -> list[tuple[TimedCandidate, TimedSide]]:
        """Return the candidates that could work ahead, each with the other side: none where a block is one call."""
        return self._candidates() if self.planner.most_calls > 1 else []

    def _block(
        self,
        timed: TimedSide,
        other: TimedSide,
        calls: int,
        kind: BlockKind = BlockKind.COUNTED,
        *,
        wanted: tuple[str, ...] = (),
    ) -> None:
        plan = self.planner.draw(calls, kind)
        timed.prepare_block(plan, wanted=wanted)
        with faults_of(other.contender):
            other.side.stop()
        if timed.side.pid != timed.judge.pid:
            timed.judge.stop()  # it goes on when it is asked
        with faults_of(timed.contender):
            if isinstance(timed, TimedCandidate):
                with timed.with_scalars_of_trial():
                    timed.run_block(plan)
                    timed.side.stop()
                    self.inspector.inspect(timed, plan)
            else:
                timed.run_block(plan)
                timed.side.stop()
