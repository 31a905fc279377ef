"""Blocks whose contents change while they run: a call works on what lies there when it is called, and on nothing older.

Nothing changes within any other block. So a candidate could make something of the parameters once a block, or work later
calls off in the first one: both are right as long as nothing changes. Here the judge writes other parameters, and other
inputs for the last call, while earlier calls run. Where the last call's ticket still lies in the pipe afterwards, its
output has to be of the new contents, however busy the machine is: one that is not is proof.

How the tickets are taken is watched meanwhile (ticket_watch.py): a candidate that takes many at once would leave no call
to come when contents change.

Such blocks do not count as time.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ridgeline.tools.judge.messages import Check, Supersede
from ridgeline.tools.measure.block_plan import BlockPlan, BlockPlanner
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.ticket_watch import TicketWatch
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.measure.timed_side import TimedSide
from ridgeline.tools.records.vocabulary import ReasonCode

UNSETTLED = 3
"""Blocks whose contents change in time, in a measurement."""
UNSETTLED_TRIES = 4
"""Blocks for each of them at most: short ones are over before the judge gets a core."""
LEAST_UNSETTLED_CALLS = 4
LONGEST_UNSETTLED_S = 2.0
_CALLS_BEFORE = 1 / 8
"""Part of the calls, in the mean, two at least, that begin before the change: what the first one makes is made by then."""
TAKEN_AT_ONCE_BLOCKS = 2
"""Blocks in which many tickets were taken at once that tell."""


@dataclass(slots=True, kw_only=True)
class Unsettled:
    """The blocks of one candidate whose contents change."""

    timed: TimedSide
    planner: BlockPlanner
    tries: int = 0
    seen: int = 0  # that changed in time
    taken_at_once: int = 0  # whose tickets were
    rng: random.Random = field(default_factory=random.SystemRandom)

    @property
    def calls(self) -> int:
        """Return the calls of such a block; 0 where there is none."""
        least = max(LEAST_UNSETTLED_CALLS, self.planner.most_calls)
        has_room = least < self.planner.n_sets and least * self.timed.usual_call_s <= LONGEST_UNSETTLED_S
        return least if TIMED_DEVICES[self.timed.judge.device_kind].changes_within_blocks and has_room else 0

    def is_open(self, wanted: int) -> bool:
        """Say whether there are to be more blocks until so many have changed in time."""
        return self.seen < wanted and self.tries < UNSETTLED_TRIES * wanted and self.calls > 0

    def plan(self) -> BlockPlan:
        """Draw a block."""
        return self.planner.draw(self.calls)

    def look(self, plan: BlockPlan) -> None:
        """Run a block that was renewed, change its contents meanwhile and grade the last call's output.

        Raises:
            Distrusted: the output is not of the contents that lay there when its call began.
        """
        self.tries += 1
        timed, last = self.timed, plan.sets[-1]
        timed.judge.ask(Supersede(set_index=last, like=plan.unasked[0], draws_only=True))
        watch = TicketWatch(timed.side.calls_to_come, call_s=min([timed.usual_call_s, *timed.per_call_s()]))
        with ThreadPoolExecutor(1) as beside:
            changing = beside.submit(self._change, plan, watch)
            try:
                timed.side.loop(plan.sets)
            finally:
                watch.has_ended = True
            timed.side.stop()
            was_in_time = changing.result()
        self._expect_one_by_one(watch)
        if timed.collect:
            timed.collect((last,), plan.sets)
        if not was_in_time:
            return
        self.seen += 1
        trial = timed.judge.ask(Check(set_index=last))
        if not trial.passed:
            reason = (
                "inputs and parameters changed while a block ran, and the output of a call that began after that is not of "
                f"the new ones (relative error {trial.rel_error:.3g}, allowed {trial.gate:.3g}): each call computes from what "
                "it is given, and keeps nothing from call to call"
            )
            raise Distrusted(ReasonCode.WORKED_AHEAD, reason)

    def _expect_one_by_one(self, watch: TicketWatch) -> None:
        self.taken_at_once += watch.found_many_taken
        if self.taken_at_once >= TAKEN_AT_ONCE_BLOCKS:
            reason = "it took the tickets of many calls of a block at once, each of which is to be taken when its call is made"
            raise Distrusted(ReasonCode.WORKED_AHEAD, reason)

    def _change(self, plan: BlockPlan, watch: TicketWatch) -> bool:
        """Change contents once some calls have begun, and return whether the last call was still to come."""
        before = max(2, round(plan.calls * self.rng.uniform(0, 2 * _CALLS_BEFORE)))
        while not 0 < watch.look() <= plan.calls - before:  # 0: its tickets are yet to be written, or all taken
            if watch.has_ended:
                return False
        self.timed.judge.ask(Supersede(set_index=plan.sets[-1], like=plan.unasked[0]))
        was_in_time = watch.look() > 0
        while not watch.has_ended:
            watch.look()
        return was_in_time
