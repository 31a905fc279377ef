"""Blocks whose inputs and parameters the judge rewrites while they run.

A kernel that keeps what it made of the parameters, or computes later calls early, then returns output of contents that are
no longer there. In all other blocks nothing changes, and both would be right.

While some calls run, the judge writes other parameters, and other inputs for one of the calls to come. The next call that
begins after that has to be of the new contents, however busy the machine is: an output that is not is proof. Nobody can
know where in a block the contents change, and each part of a block has its turn. On a busy machine, where the judge is
late, there are more blocks, not fewer graded calls. Two of the changes come when all blocks that count are over, and further
ones until then: a kernel that counts them, or knows when a measurement ends, has nothing that tells it that none will follow.

Where a change came too late the next one is begun in the first call: one that makes what later calls of a few microseconds keep
lasts long enough for it, and all others would be over.

ticket_watch.py watches from then on how tickets are taken: a kernel that takes many at once would leave no call to come. Before
the graded call has begun nothing looks at outputs: a line that another core has read is slow to write, by which a kernel tells.

The time of such a block does not count.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from statistics import median

from ridgeline.tools.judge.messages import Check, DrawNext, Supersede
from ridgeline.tools.machine.process_use import on_any_core
from ridgeline.tools.measure.block_plan import BlockKind, BlockPlan, BlockPlanner
from ridgeline.tools.measure.distrust import ROUNDED_ERROR, Distrusted, error_words
from ridgeline.tools.measure.ticket_watch import TicketWatch
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.measure.timed_side import TimedCandidate
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import ReasonCode

BLOCK_PARTS = 3
"""Parts of a block. Contents have to change in each: a kernel could keep things for the parts in which they never do."""
TRIES = 8
"""Most blocks for each wanted change: on a busy machine the judge gets a core late, and the change is too late."""
LONG_BLOCK_TRIES = 4
"""The same for blocks longer than CERTAIN_BLOCK_S, in which the judge always gets a core in time."""
CERTAIN_BLOCK_S = 0.1
PATIENCE = 4
"""Blocks without a change in time after which the kernel is stopped in the next one while the judge writes."""
LEAST_CHANGING_CALLS = 2
LONGEST_CHANGING_S = 2.0
_SHORT_BLOCK = 4
"""In a block of fewer calls contents change during one of the first two, once it has worked for a while. In a longer block at
least two calls begin before: by then the first one has made what a kernel might keep."""
_PART_OF_FIRST = (0.25, 0.75)
"""Range of that while, as a share of a call's usual time."""


@dataclass(slots=True, kw_only=True)
class ChangingBlocks:
    """The blocks of one candidate whose contents change, in one measurement.

    Each part of a block gets two changes: one while the candidate runs, which it cannot notice, and one while it is stopped
    (`is_held`), so that no call goes by before the graded one. In the first kind some calls go by until the parent knows that
    all is written. A candidate that is right in the last call alone, or in one half, is wrong in some part.
    """

    timed: TimedCandidate
    planner: BlockPlanner
    tries: int = 0
    changed: set[tuple[int, bool]] = field(default_factory=set)  # parts that had a change, and whether it was held
    are_last: bool = False  # no block that counts follows
    in_vain: int = 0  # blocks since the last change that came in time
    delays: list[int] = field(default_factory=list)  # calls that began while contents were written
    rng: random.Random = field(default_factory=random.SystemRandom)
    _beside: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1), init=False)
    _kept_to_the_end: frozenset[tuple[int, bool]] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        """Begin the thread that changes contents: beginning with a block, it would show in the machine's count of tasks."""
        self._beside.submit(int).result()
        self._kept_to_the_end = frozenset((self.rng.randrange(BLOCK_PARTS), is_held) for is_held in (False, True))

    @property
    def n_changed(self) -> int:
        """Return how many of the wanted changes came in time."""
        return len(self.changed)

    @property
    def n_wanted(self) -> int:
        """Return how many changes a measurement has: two in each part of a block."""
        return 2 * BLOCK_PARTS

    @property
    def _kept_back(self) -> frozenset[tuple[int, bool]]:
        """Return the wanted changes that do not count yet: those kept to the end, until these are the last blocks."""
        return frozenset() if self.are_last else self._kept_to_the_end

    @property
    def _lacking(self) -> list[tuple[int, bool]]:
        """Return the wanted changes that are still to come, without those that are kept back."""
        ways = ((part, is_held) for part in range(BLOCK_PARTS) for is_held in (False, True))
        return [each for each in ways if each not in self.changed | self._kept_back]

    @property
    def has_room(self) -> bool:
        """Say whether there can be such a block: a set is left over, it is short enough, and the device lets it change."""
        calls = max(LEAST_CHANGING_CALLS, self.planner.most_calls)
        fits = calls < self.planner.n_sets and calls * self.timed.call_now_s <= LONGEST_CHANGING_S
        return fits and TIMED_DEVICES[self.timed.judge.device_kind].changes_within_blocks

    def is_open(self, wanted: int) -> bool:
        """Say whether another block is to run, until `wanted` changes came in time or the tries are used up.

        Those that are kept back are wanted of the last blocks alone. Further blocks are no tries.
        """
        is_long = self.planner.most_calls * self.timed.call_now_s > CERTAIN_BLOCK_S
        tries = LONG_BLOCK_TRIES if is_long else TRIES
        most = self.n_wanted - len(self._kept_back)
        return self.n_changed < min(wanted, most) and self.tries < tries * wanted and self.has_room

    def plan(self) -> BlockPlan:
        """Draw a block of as many calls as any: their number would tell a candidate what kind of block it is in."""
        return self.planner.draw(max(LEAST_CHANGING_CALLS, self.planner.count()), BlockKind.CHANGING)

    def run(self, plan: BlockPlan) -> None:
        """Run a block whose contents are fresh, change them meanwhile, and grade calls that began after the change.

        Raises:
            Distrusted: the output is not of the contents that lay there when its call began, or calls came late.
        """
        self.tries += bool(self._lacking)
        self.in_vain += 1
        timed = self.timed
        timed.judge.ask(DrawNext())
        watch = TicketWatch(side=timed.side, sets=plan.sets, block_s=plan.calls * timed.call_now_s)
        with on_any_core(timed.judge.pid):
            changing = self._beside.submit(self._change, plan, watch)
            try:
                timed.side.loop(plan.sets)
            finally:
                watch.ended.set()
                wait((changing,))
            to_see = changing.result()
        timed.side.stop()
        _expect_returned(watch)
        if not to_see:
            return
        for index, trial in self._graded(to_see, plan.sets):
            if not trial.passed:
                raise _not_fresh(trial, is_right_alone=self._is_right_alone(index))

    def _graded(self, graded: Sequence[int], called: Sequence[int]) -> Iterator[tuple[int, Trial]]:
        """Give each of these sets with its output's grades, of all that a block has called."""
        if self.timed.collect:
            self.timed.collect(graded, called)
        for index in graded:
            yield index, self.timed.judge.ask(Check(set_index=index))

    def _is_right_alone(self, index: int) -> bool:
        """Call it on one set that does not change, and say whether its output is right then."""
        self.timed.side.loop((index,))
        self.timed.side.stop()
        return all(trial.passed for _, trial in self._graded((index,), (index,)))

    def _change(self, plan: BlockPlan, watch: TicketWatch) -> tuple[int, ...]:
        """Change contents once some calls have begun; return the sets whose outputs are graded, none where no call sees it.

        The first call that begins after the change is always graded. A kernel that keeps something is wrong there, even if
        later calls are right again.
        """
        part, is_held = self._next()
        is_in_first = not is_held and self.in_vain % 2 == 0
        first = 1 if plan.calls < _SHORT_BLOCK or is_in_first else 2
        delay = 0 if is_held else self._usual_delay()
        place = first if is_in_first else max(first, self._place(part, plan.calls, first) - delay)
        begun = self._await(place, watch, polls=is_held)
        to_see: tuple[int, ...] = ()
        if 0 < begun < plan.calls and not (plan.calls < _SHORT_BLOCK and self._has_ended_early(watch)):
            call = self.rng.randrange(min(begun + delay + 1, plan.calls - 1), plan.calls)
            after = self._written(plan, call, watch, is_held=is_held)
            if not is_held:
                self.delays.append(after - begun)
            to_see = self._seen_by(plan, after, call)
            if to_see:
                self._await(after + 1, watch, polls=False)
            if to_see and call >= after:
                self._note(self._part_of(after, plan.calls, first, part), is_held=is_held)
        while watch.pause():
            watch.look()
        return to_see

    def _await(self, before: int, watch: TicketWatch, *, polls: bool) -> int:
        """Wait until `before` calls have begun; return how many have, 0 where the block is over. It sleeps, unless it polls."""
        while (begun := self.timed.side.calls_begun()) < before:
            if watch.ended.is_set() if polls else not watch.pause():
                return 0
        return begun

    def _written(self, plan: BlockPlan, call: int, watch: TicketWatch, *, is_held: bool) -> int:
        """Write other parameters and a call's other inputs; return how many calls have begun by then."""
        if is_held:
            self.timed.side.hold()
        try:
            self.timed.judge.ask(Supersede(set_index=plan.sets[call], like=plan.unasked[0]))
            return self.timed.side.calls_begun() or plan.calls  # 0: the block is over
        finally:
            if is_held:
                self.timed.side.cont()

    def _next(self) -> tuple[int, bool]:
        """Draw a part that still lacks a change, any where none does, and whether the candidate is to be stopped for it."""
        any_way = self.rng.randrange(BLOCK_PARTS), self.rng.random() < 1 / 2
        part, is_held = self.rng.choice(self._lacking or [any_way])
        return part, is_held or self.in_vain > PATIENCE

    def _note(self, part: int, *, is_held: bool) -> None:
        """Note a change in a part of a block; after too many blocks in vain one that was held counts for both kinds."""
        found = {(part, is_held)} | ({(part, False)} if self.in_vain > PATIENCE else set())
        if found - self.changed or not self._lacking:
            self.in_vain = 0
        self.changed |= found - self._kept_back

    def _place(self, part: int, calls: int, first: int) -> int:
        """Draw how many calls of a block are to have begun when contents have changed in one of its parts."""
        places = range(first, calls)
        return self.rng.choice([each for each in places if self._part_of(each, calls, first, part) == part])

    def _part_of(self, begun: int, calls: int, first: int, wanted: int) -> int:
        """Return the part of a block that call number `begun` is in; with fewer calls than parts it is the wanted one."""
        places = calls - first
        return wanted if places < BLOCK_PARTS else (begun - first) * BLOCK_PARTS // places

    def _usual_delay(self) -> int:
        """Return how many calls usually begin while contents are written."""
        return int(median(self.delays)) if self.delays else 0

    def _seen_by(self, plan: BlockPlan, begun: int, call: int) -> tuple[int, ...]:
        """Return the sets of the calls to grade: the next one, any later one, and the one whose inputs changed."""
        if begun >= plan.calls:
            return ()
        chosen = (begun, self.rng.randrange(begun, plan.calls), max(call, begun))
        return tuple(plan.sets[each] for each in dict.fromkeys(chosen))

    def _has_ended_early(self, watch: TicketWatch) -> bool:
        """Let the first call work for a while, and say whether the block was over first."""
        return watch.ended.wait(self.rng.uniform(*_PART_OF_FIRST) * self.timed.call_now_s)


def _not_fresh(trial: Trial, *, is_right_alone: bool) -> Distrusted:
    """Return the fault of a call that began after contents changed, and whose output is not of the new ones."""
    told = (
        "inputs and parameters changed while a block ran, and the output of a call that began after that is not of "
        f"the new ones ({error_words(trial)})"
    )
    if is_right_alone:
        why = "each call does its whole work on what it is given, and keeps nothing from call to call"
        return Distrusted(ReasonCode.WORKED_AHEAD, f"{told}: {why}")
    why = (
        "nor was it in a call alone, without a change: it is wrong for such contents, reads outside of its tensors, or "
        "keeps results for longer"
    )
    return Distrusted(
        ReasonCode.PRECISION_TOO_LOW if trial.rel_error < ROUNDED_ERROR else ReasonCode.WORKED_AHEAD, f"{told}, {why}"
    )


def _expect_returned(watch: TicketWatch) -> None:
    """Check that no ticket was taken before the call before it had returned.

    Raises:
        Distrusted: one was.
    """
    late = watch.set_changed_late()
    if late is not None:
        reason = (
            f"when the next call's ticket had been taken, the output of set {late} was yet to be made: it takes tickets "
            "ahead, each of which is to be taken when its call is made"
        )
        raise Distrusted(ReasonCode.WORKED_AHEAD, reason)
