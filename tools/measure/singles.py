"""Blocks of one call, beside long blocks: whether a candidate does work for later calls ahead, or puts it off to the last.

Who works a whole block off at once does so before it can know that there is one call only, so its blocks of one call are
late. On a busy machine an honest candidate's are late too: going on after a stop waits for a core, which a long block spreads
over its calls. What tells the two apart is what the time went into. **Work takes processor time, and waiting does not.** So on
a CPU no candidate is blamed unless the processor time of its blocks of one call is that of work for other calls, and
lateness is forgiven only where waits for a core, seen in those very blocks, explain it. What is neither is not told.

A GPU's work takes no processor time. There a late look says nothing while the other side waits for cores.
"""

from __future__ import annotations

from enum import StrEnum
from statistics import median

from ridgeline.tools.errors import EngineError
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
OTHERS_WORK_SHARE = 0.5
"""Part of the work of a long block's other calls above which the processor time of a block of one call is proof, however long
its threads waited: a thread that spins until another one gets a core takes processor time too, in long blocks no less."""
LATE_LOOKS = 3
"""Looks, of 2 * SINGLES blocks a side, in which a candidate has to work ahead, and none in which it is even."""
MOST_LOOKS = 8
"""Looks after which the machine is too busy to tell."""
AHEAD_PERCENTILE = 75
"""A quarter of the blocks of one call may do the work of others, so that chance blames nobody. Who does it in fewer blocks
gains nothing: the median over blocks counts."""
OTHERS_EXCESS_PERCENTILE = 75
"""The other side's blocks of one call grant what a quarter of them exceeds: waking up and cold caches cost both alike."""


class Look(StrEnum):
    """What blocks of one call say of a candidate."""

    EVEN = "even"  # each call does its own work
    AHEAD = "ahead"  # one call does the work of others
    UNTOLD = "untold"  # the machine does not let it be seen


def has_late_singles(timed: TimedSide) -> bool:
    """Say whether a quarter of the blocks of one call took clearly longer than a call of the blocks that count."""
    return _is_late(timed, timed.blocks)


def look(timed: TimedSide, other: TimedSide) -> Look:
    """Say what a side's blocks of one call show beside its long ones of the same seconds, `timed.beside`."""
    if TIMED_DEVICES[timed.judge.device_kind].works_on_processors:
        return _look_at_work(timed, other)
    granted_s = _granted_s(_excesses_s(other, other.blocks))
    if not _is_late(
        timed, timed.beside, granted_s=granted_s, percent=50
    ):  # only a clock says it: most blocks have to be
        return Look.EVEN
    return Look.UNTOLD if are_held_up(other.singles) else Look.AHEAD


def worked_ahead(timed: TimedSide) -> Distrusted:
    """Return the fault of a side whose blocks of one call do the work of others."""
    reason = _clocks_words(timed)
    if TIMED_DEVICES[timed.judge.device_kind].works_on_processors:
        single_ms = 1e3 * percentile([block.ran_s for block in timed.singles], AHEAD_PERCENTILE)
        reason += f", of processor time {single_ms:.3g} ms and {1e3 * _work_s(timed.beside):.3g} ms"
    return Distrusted(ReasonCode.WORKED_AHEAD, f"{reason}: work for later calls is done ahead, or put off to the last")


def untold(timed: TimedSide) -> EngineError:
    """Return the fault of a machine on which it does not show whether a side works ahead."""
    return EngineError(
        f"the machine is too busy to time this kernel: {_clocks_words(timed)}, and whether that is work or waiting does not "
        "show; time it again once other programs have ended"
    )


def _clocks_words(timed: TimedSide) -> str:
    single_ms = 1e3 * percentile([timed.call_s(block) for block in timed.singles], AHEAD_PERCENTILE)
    call_ms = 1e3 * median(map(timed.call_s, timed.beside))
    return f"the only call of a block takes {single_ms:.3g} ms, a call of a long block {call_ms:.3g} ms"


def _look_at_work(timed: TimedSide, other: TimedSide) -> Look:
    if not _is_late(timed, timed.beside):
        return Look.EVEN
    granted_s = _granted_s(_excesses_s(other, other.blocks, less_waits=True))
    is_explained = not _is_late(timed, timed.beside, granted_s=granted_s, less_waits=True)
    work_s, block_s = (
        percentile([block.ran_s for block in blocks], AHEAD_PERCENTILE) for blocks in (timed.singles, timed.beside)
    )
    if work_s <= _most_work_s(timed, other):
        return Look.EVEN if is_explained else Look.UNTOLD
    call_s = _work_s(timed.beside)
    is_proof = work_s > call_s + OTHERS_WORK_SHARE * (block_s - call_s)
    return Look.AHEAD if is_proof or not is_explained else Look.UNTOLD


def _most_work_s(timed: TimedSide, other: TimedSide) -> float:
    """Return the processor time up to which a block of one call does the work of one call."""
    cores = max(1, min(timed.threads, len(measurement_cores())))
    others_call_s = _work_s(other.blocks)
    granted_s = _granted_s([block.ran_s - others_call_s for block in other.singles])
    return (1 + SINGLE_EXCESS_SHARE) * _work_s(timed.beside) + cores * SINGLE_EXCESS_S + granted_s


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
