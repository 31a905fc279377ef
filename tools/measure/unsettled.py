"""Blocks whose contents change while they run: a call works on what lies there when it is called, and on nothing older.

Nothing changes within any other block. So a candidate could make something of the parameters once a block, or work later
calls off in the first one: both are right as long as nothing changes. Here the judge writes other parameters, and other
inputs for one of the calls to come, while earlier calls run. Where that call's ticket still lies in the pipe afterwards,
its output has to be of the new contents, however busy the machine is: one that is not is proof. Which call it is nobody
can know: a candidate that can tell the last one could be right there alone.

How the tickets are taken is watched meanwhile (ticket_watch.py): a candidate that takes many at once would leave no call
to come when contents change.

Such blocks do not count as time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ridgeline.tools.judge.messages import Check, Supersede
from ridgeline.tools.measure.block_plan import BlockKind, BlockPlan, BlockPlanner
from ridgeline.tools.measure.distrust import Distrusted, error_words
from ridgeline.tools.measure.ticket_watch import TicketWatch
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.measure.timed_side import TimedSide
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import ReasonCode

UNSETTLED = 3
"""Blocks whose contents change in time, in a measurement."""
UNSETTLED_TRIES = 4
"""Blocks for each of them at most: short ones are over before the judge gets a core."""
LEAST_UNSETTLED_CALLS = 2
LONGEST_UNSETTLED_S = 2.0
_FEW_CALLS = 4
"""In a block of fewer calls the change comes after the first one, which then makes what it makes for a while."""
_PART_OF_FIRST = (0.25, 0.75)
"""Range of that while, as part of a call."""
_CALLS_BEFORE = 1 / 8
"""Part of the calls, in the mean, two at least of many, that begin before the change: what the first one makes is made by
then."""
_LAST_ONES = 1 / 3
"""Share of the blocks in which the last call is chosen: its ticket is the one that most often still lies there."""


@dataclass(slots=True, kw_only=True)
class Unsettled:
    """The blocks of one candidate whose contents change."""

    timed: TimedSide
    planner: BlockPlanner
    tries: int = 0
    seen: int = 0  # that changed in time
    rng: random.Random = field(default_factory=random.SystemRandom)

    @property
    def has_room(self) -> bool:
        """Say whether there can be such a block: a set is left over, it is short enough, and the device lets it change."""
        calls = max(LEAST_UNSETTLED_CALLS, self.planner.most_calls)
        fits = calls < self.planner.n_sets and calls * self.timed.usual_call_s <= LONGEST_UNSETTLED_S
        return fits and TIMED_DEVICES[self.timed.judge.device_kind].changes_within_blocks

    def is_open(self, wanted: int) -> bool:
        """Say whether there are to be more blocks until so many have changed in time."""
        return self.seen < wanted and self.tries < UNSETTLED_TRIES * wanted and self.has_room

    def plan(self) -> BlockPlan:
        """Draw a block of as many calls as any: their number would tell a candidate what kind of block it is in."""
        return self.planner.draw(max(LEAST_UNSETTLED_CALLS, self.planner.count()), BlockKind.CHANGING)

    def look(self, plan: BlockPlan) -> None:
        """Run a block that was renewed, change its contents meanwhile and grade the output of the call that is to see it.

        Raises:
            Distrusted: the output is not of the contents that lay there when its call began, or calls came late.
        """
        self.tries += 1
        timed = self.timed
        timed.judge.ask(Supersede(set_index=plan.sets[-1], like=plan.unasked[0], draws_only=True))
        watch = TicketWatch(side=timed.side, sets=plan.sets, block_s=plan.calls * timed.usual_call_s)
        with ThreadPoolExecutor(1) as beside:
            changing = beside.submit(self._change, plan, watch)
            try:
                timed.side.loop(plan.sets)
            finally:
                watch.ended.set()
            timed.side.stop()
            changed, other = changing.result()
        _expect_returned(watch)
        self.seen += changed is not None
        fresh = tuple(dict.fromkeys(index for index in (changed, other) if index is not None))
        if timed.collect and fresh:
            timed.collect(fresh, plan.sets)
        for index in fresh:
            _expect_fresh(timed.judge.ask(Check(set_index=index)))

    def _change(self, plan: BlockPlan, watch: TicketWatch) -> tuple[int | None, int | None]:
        """Change contents once some calls have begun; return the sets of calls that are to see it, None for none.

        The first one's inputs have changed, and its call alone tells of work on inputs done ahead. The other one is that of
        some call that began after the change: it tells of parameters, where the first one came too late too.
        """
        has_few = plan.calls < _FEW_CALLS
        before = 1 if has_few else max(2, round(plan.calls * self.rng.uniform(0, 2 * _CALLS_BEFORE)))
        while (begun := watch.look()) < before:
            if not watch.pause():
                return None, None
        changed = other = None
        if begun < plan.calls and not (has_few and self._has_ended_early(watch)):
            call = self._call_to_come(begun, plan.calls)
            self.timed.judge.ask(Supersede(set_index=plan.sets[call], like=plan.unasked[0]))
            to_come = plan.sets[watch.look() or plan.calls :]  # 0: the block is over
            changed = plan.sets[call] if plan.sets[call] in to_come else None
            other = self._soon(to_come) if to_come else None
        while watch.pause():
            watch.look()
        return changed, other

    def _has_ended_early(self, watch: TicketWatch) -> bool:
        """Let the first call work for a while, and say whether the block was over first."""
        return watch.ended.wait(self.rng.uniform(*_PART_OF_FIRST) * self.timed.usual_call_s)

    def _soon(self, sets: Sequence[int]) -> int:
        """Choose a set, sooner ones more often: who keeps something for a few calls keeps it for these."""
        return sets[min(int(len(sets) ** self.rng.random()), len(sets)) - 1]

    def _call_to_come(self, begun: int, calls: int) -> int:
        """Choose a call that has not begun, and where there is another not the next one: 0 is a block's first call."""
        if self.rng.random() < _LAST_ONES:
            return calls - 1
        return self.rng.randrange(min(begun + 1, calls - 1), calls)


def _expect_fresh(trial: Trial) -> None:
    """Check the output of a call that began after contents changed.

    Raises:
        Distrusted: it is not of the new ones.
    """
    if not trial.passed:
        reason = (
            "inputs and parameters changed while a block ran, and the output of a call that began after that is not of "
            f"the new ones ({error_words(trial)}): each call computes from what it is given, and keeps nothing from call to "
            "call"
        )
        raise Distrusted(ReasonCode.WORKED_AHEAD, reason)


def _expect_returned(watch: TicketWatch) -> None:
    """Check that no ticket was taken before the call before it had returned.

    Raises:
        Distrusted: one was.
    """
    late = watch.changed_since()
    if late is not None:
        reason = (
            f"when the next call's ticket had been taken, the output of set {late} was yet to be made: it takes tickets "
            "ahead, each of which is to be taken when its call is made"
        )
        raise Distrusted(ReasonCode.WORKED_AHEAD, reason)
