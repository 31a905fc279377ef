"""Work of blocks whose contents changed while they ran, beside that of blocks that count.

Who notices a change, by a stop, a gap or any clock, can make anew what it kept, and is right. In blocks that count it
notices none, and keeps it: less work than it does where it has to be right. So the calls after a change may take no more
processor time than calls usually do, but for what one call takes that makes everything: a kernel that compares all of its
parameters makes what it keeps of them once more, twice where it met them half written.

Only processor time is compared: by the clock a call that waits for a core looks like one that works. Threads that spin for one
that waits work too, by that measure, and the parent takes a core to see when a change is due. So only blocks in which hardly
any thread waited tell anything, and on a busy machine nothing does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.timed_side import TimedCandidate
from ridgeline.tools.records.vocabulary import ReasonCode

MORE_WORK_SHARE = 0.5
"""Calls after a change may take this share more than usual."""
MAKING_CALLS = 2
"""Calls after a change that may take as much as the only call of a block."""
MORE_WORK_S = 5e-4
"""A block with a change may take this much more on each core: threads wake up, and find what was written in no cache."""
LEAST_TELLING = 3
"""Blocks of which TOLD_SHARE have to take more: in one of three inputs change alone, which who watches parameters misses."""
TOLD_SHARE = 1 / 3
_TELLING_SHARE = 1 / 3
"""Share of a block's calls that come after a change that tells anything."""
_QUIET_SHARE = 1 / 10
"""Share of such a block for which its threads may have waited for a core, all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedBlock:
    """One block whose contents changed."""

    calls: int
    before: int  # calls that had begun when contents began to change
    ran_s: float  # the side's processor time
    lasted_s: float  # without the time for which the side was stopped
    waited_s: float  # by the side's threads, for a core
    changing_s: float  # while contents were written beside running calls; 0 where these were stopped

    @property
    def after(self) -> int:
        """Return how many calls began later."""
        return self.calls - self.before


def works_more(timed: TimedCandidate, changed: Sequence[ChangedBlock]) -> bool:
    """Say whether calls after a change work more than in blocks that count, in TOLD_SHARE of the blocks that can tell."""
    telling = _telling(changed)
    if len(telling) < LEAST_TELLING or not timed.blocks or not timed.singles:
        return False
    return len(_working_more(timed, telling)) >= TOLD_SHARE * len(telling)


def worked_more(timed: TimedCandidate, changed: Sequence[ChangedBlock]) -> Distrusted:
    """Return the fault of a candidate whose calls work more after a change."""
    call_s = _call_s(timed)
    after_s = call_s + median(_more_s(timed, block) / block.after for block in _working_more(timed, _telling(changed)))
    reason = (
        f"calls after a change of inputs or parameters take {1e3 * after_s:.3g} ms of processor time, in blocks without one "
        f"{1e3 * call_s:.3g} ms: what it keeps it makes anew where it notices a change, and only there. Each call does its "
        "whole work on what it is given"
    )
    return Distrusted(ReasonCode.WORKED_AHEAD, reason)


def _telling(changed: Sequence[ChangedBlock]) -> list[ChangedBlock]:
    quiet = (block for block in changed if block.waited_s <= _QUIET_SHARE * block.lasted_s)
    return [block for block in quiet if block.after >= _TELLING_SHARE * block.calls]


def _working_more(timed: TimedCandidate, changed: Sequence[ChangedBlock]) -> list[ChangedBlock]:
    return [block for block in changed if _more_s(timed, block) > _allowed_s(timed, block)]


def _call_s(timed: TimedCandidate) -> float:
    """Return the usual processor time of a call in blocks that count."""
    return median(block.ran_s / block.calls for block in timed.blocks)


def _more_s(timed: TimedCandidate, block: ChangedBlock) -> float:
    return block.ran_s - block.calls * _call_s(timed)


def _allowed_s(timed: TimedCandidate, block: ChangedBlock) -> float:
    """Return how much more processor time a block with a change may take than one without."""
    cores = max(1, min(timed.threads, len(measurement_cores())))
    made_s = MAKING_CALLS * median(single.ran_s for single in timed.singles)
    spun_s = (cores - 1) * block.waited_s
    return MORE_WORK_SHARE * block.after * _call_s(timed) + made_s + spun_s + cores * (MORE_WORK_S + block.changing_s)
