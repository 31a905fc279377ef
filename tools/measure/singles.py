"""Blocks of one call, beside long blocks: whether a candidate does work for later calls ahead, or puts it off to the last.

Who works a whole block off at once does so before it can know that there is one call only, so its blocks of one call are
late. On a busy machine an honest candidate's are late too: going on after a stop waits for a core, which a long block spreads
over its calls. What tells the two apart is what the time went into. **Work takes processor time, and waiting does not.** So on
a CPU no candidate works ahead unless the processor time of its blocks of one call is that of work for other calls, and
lateness is forgiven only where waits for a core, seen in those very blocks, explain it. What is neither is not told. Whose
fault that is the other side's blocks of the same look say: other programs hold them up, and a candidate that sleeps, or whose
threads are in each other's way, does not.
Threads that spin for others that wait do so in long blocks no less, in which the work of the other calls comes on top.

A GPU's work takes no processor time. There a late look says nothing while the other side waits for cores.
"""

from __future__ import annotations

from enum import StrEnum
from statistics import median

from ridgeline.tools.errors import MachineBusyError
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.statistics import percentile
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.measure.timed_side import Block, TimedSide, are_held_up
from ridgeline.tools.records.vocabulary import ReasonCode

SINGLES = 5
"""Blocks of one call in a measurement. A candidate is blamed for them only after many more."""
SINGLE_EXCESS_S = 1e-3
SINGLE_EXCESS_SHARE = 0.5
"""A block of one call may take a call of a long block, this share of one and this time more: going on after a stop costs
0.05 to 0.3 ms. Work for a whole block takes about 12 ms. Of processor time it may take as much more on each core."""
OTHERS_WORK_SHARE = 1 / 3
"""A long block takes more processor time than a block of one call, by the work of its other calls. Where it takes less than
this share more of what those calls take at the best pace seen, their work was done in the block of one call. Threads that
wait, or spin for others that wait, do so in long blocks no less: only work makes the difference."""
LATE_LOOKS = 3
"""Looks, of 2 * SINGLES blocks a side, in which a candidate has to work ahead, and none in which it is even."""
MOST_LOOKS = 8
"""Looks after which the machine is too busy to tell, or was quiet in all of them and the candidate hides it."""
AHEAD_PERCENTILE = 75
"""A quarter of the blocks of one call may do the work of others, so that chance blames nobody. Who does it in fewer blocks
gains nothing: the median over blocks counts."""
OTHERS_EXCESS_PERCENTILE = 75
"""The other side's blocks of one call grant what a quarter of them exceeds: waking up and cold caches cost both alike."""


class Look(StrEnum):
    """Evidence of blocks of one call about a candidate."""

    EVEN = "even"  # each call does its own work
    AHEAD = "ahead"  # one call does the work of others
    UNDECIDED = "undecided"  # the machine does not let it be seen
    UNEXPLAINED = "unexplained"  # the candidate hides it: no other program was at work


def has_late_singles(timed: TimedSide) -> bool:
    """Say whether a quarter of the blocks of one call took clearly more, by either clock, than a call of those that count."""
    long = [block for block in timed.blocks if block.calls > 1] or timed.blocks
    does_more = _works_on_processors(timed) and _ahead_s(timed.singles) > _most_work_s(timed, long)
    return does_more or _is_late(timed, long)


def look(timed: TimedSide, other: TimedSide) -> Look:
    """Say what a side's blocks of one call show beside its long ones of the same seconds, `timed.beside`."""
    if _works_on_processors(timed):
        return _look_at_work(timed, other)
    granted_s = _granted_s(_excesses_s(other, other.blocks))
    # A GPU's work shows on the clock alone: half of the blocks have to be late, not a quarter.
    if not _is_late(timed, timed.beside, granted_s=granted_s, percent=50):
        return Look.EVEN
    return Look.UNDECIDED if are_held_up(other.singles) else Look.AHEAD


def worked_ahead(timed: TimedSide) -> Distrusted:
    """Return the fault of a side whose blocks of one call do the work of others."""
    reason = f"{_figures(timed)}: work for later calls is done ahead, or put off to the last"
    return Distrusted(ReasonCode.WORKED_AHEAD, reason)


def unexplained(timed: TimedSide) -> Distrusted:
    """Return the fault of a side that hides whether it works ahead, on a machine that held up nobody."""
    reason = (
        f"{_figures(timed)}, and whether that is work for later calls does not show, though other programs held up nobody: "
        "the first call of a block may neither sleep nor spin, nor have many threads share a core"
    )
    return Distrusted(ReasonCode.WORKED_AHEAD, reason)


def undecided(timed: TimedSide) -> MachineBusyError:
    """Return the fault of a machine on which it does not show whether a side works ahead."""
    return MachineBusyError(
        f"the machine is too busy to time this kernel: {_clocks_words(timed)}, and whether that is work or waiting does not "
        "show; time it again once other programs have ended"
    )


def _figures(timed: TimedSide) -> str:
    """Return what the only call of a block and a call of a long one take, by each clock that counts."""
    if not _works_on_processors(timed):
        return _clocks_words(timed)
    single_ms, call_ms = 1e3 * _ahead_s(timed.singles), 1e3 * _work_s(timed.beside)
    return f"{_clocks_words(timed)}, of processor time {single_ms:.3g} ms and {call_ms:.3g} ms"


def _clocks_words(timed: TimedSide) -> str:
    single_ms = 1e3 * percentile([timed.call_s(block) for block in timed.singles], AHEAD_PERCENTILE)
    call_ms = 1e3 * median(map(timed.call_s, timed.beside))
    return f"the only call of a block takes {single_ms:.3g} ms, a call of a long block {call_ms:.3g} ms"


def _works_on_processors(timed: TimedSide) -> bool:
    return TIMED_DEVICES[timed.judge.device_kind].works_on_processors


def _look_at_work(timed: TimedSide, other: TimedSide) -> Look:
    is_late = _is_late(timed, timed.beside)
    unexplained_s = _granted_s(_excesses_s(other, other.blocks, less_waits=True))
    is_explained = not _is_late(timed, timed.beside, granted_s=unexplained_s, less_waits=True)
    others_call_s = _work_s(other.blocks)
    granted_s = _granted_s([block.ran_s - others_call_s for block in other.singles])
    untold = Look.UNDECIDED if _are_others_at_work(timed, other) else Look.UNEXPLAINED
    if _ahead_s(timed.singles) <= _most_work_s(timed, timed.beside) + granted_s:
        return untold if is_late and not is_explained else Look.EVEN
    if _leaves_others_nothing(timed) or (is_late and not is_explained):
        return Look.AHEAD
    return untold if is_late or are_held_up([*timed.singles, *timed.beside]) else Look.EVEN


def _are_others_at_work(timed: TimedSide, other: TimedSide) -> bool:
    """Say whether other programs held up either side in a look.

    The reference has no more threads than there are cores, so nobody else makes it wait, or late. A candidate's waits are
    theirs too, unless it has more threads than the reference and the cores: such threads wait for each other.
    """
    if are_held_up(other.singles) or _is_late(other, other.blocks):
        return True
    shares_cores = timed.threads > max(other.threads, len(measurement_cores()))
    return not shares_cores and are_held_up([*timed.singles, *timed.beside])


def _leaves_others_nothing(timed: TimedSide) -> bool:
    """Say whether the other calls of a long block add next to no processor time to that of a block of one call."""
    single_s, block_s = (median(block.ran_s for block in blocks) for blocks in (timed.singles, timed.beside))
    best_s = min(map(timed.call_s, [*timed.blocks, *timed.beside]))
    others = median(block.calls for block in timed.beside) - 1
    return block_s - single_s < OTHERS_WORK_SHARE * others * min(best_s, _work_s(timed.beside))


def _most_work_s(timed: TimedSide, long: list[Block]) -> float:
    """Return the processor time up to which a block of one call does the work of one call."""
    cores = max(1, min(timed.threads, len(measurement_cores())))
    return (1 + SINGLE_EXCESS_SHARE) * _work_s(long) + cores * SINGLE_EXCESS_S


def _ahead_s(singles: list[Block]) -> float:
    """Return the processor time of the block of one call that a quarter of them exceed."""
    return percentile([block.ran_s for block in singles], AHEAD_PERCENTILE)


def _work_s(blocks: list[Block]) -> float:
    """Return the usual processor time of a call."""
    return median(block.ran_s / block.calls for block in blocks)


def _is_late(
    timed: TimedSide,
    long: list[Block],
    *,
    granted_s: float = 0.0,
    less_waits: bool = False,
    percent: int = AHEAD_PERCENTILE,
) -> bool:
    call_s = median(map(timed.call_s, long))
    allowed_s = SINGLE_EXCESS_SHARE * call_s + SINGLE_EXCESS_S + granted_s
    return percentile(_excesses_s(timed, long, less_waits=less_waits), percent) > allowed_s


def _excesses_s(timed: TimedSide, long: list[Block], *, less_waits: bool = False) -> list[float]:
    """Return by how much each block of one call took longer than a call of the long blocks.

    `less_waits`: than such a call and the waits for a core of those who had a part in it.
    """
    call_s = median(map(timed.call_s, long))
    waits_s = [block.waited_s + block.parent_waited_s if less_waits else 0.0 for block in timed.singles]
    return [
        timed.waited_for_s(block) - waited_s - call_s for block, waited_s in zip(timed.singles, waits_s, strict=True)
    ]


def _granted_s(excesses_s: list[float]) -> float:
    return max(0.0, percentile(excesses_s, OTHERS_EXCESS_PERCENTILE))
