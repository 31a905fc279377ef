"""Copy a Python runner's outputs and time each copy, to catch work deferred until the output is asked for.

The runner keeps each call's output and copies it into the judge's memory when asked, outside of any timed block. A
candidate that shares the runner's Python could put its work off until then: for some calls, in part, or for a whole
block until its first output is asked for. After every block the last call's output and random others are therefore
collected in a random order, and the time of a block's collections counts for all of its calls.

On a CPU that time is processor time: deferred work takes as much of it as work in time, and other programs, which make
a process wait, change it little. A GPU's work takes no processor time, so there the clock decides.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean, median

from ridgeline.tools.judge.messages import Copy
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.records.vocabulary import DeviceKind, Interface
from ridgeline.tools.runner.process import RunnerProcess

RANDOM_ONES = 3
"""Outputs collected of a block's calls before the last one."""


@dataclass(slots=True)
class Collector:
    """Brings one runner's outputs into the judge's memory."""

    runner: RunnerProcess
    judge: JudgeProcess
    blocks_s: list[float] = field(default_factory=list)  # a block's collections, averaged over its calls
    copies_s: list[float] = field(default_factory=list)  # the judge's copy of as much, right after each collection
    calls_s: list[float] = field(default_factory=list)  # a call, from the time between two blocks' collections
    rng: random.Random = field(default_factory=random.SystemRandom)
    _ended_s: float | None = None  # the runner's time when the last collection had ended

    def __call__(self, chosen: Sequence[int], sets: Sequence[int]) -> None:
        """Let the runner copy the outputs of the chosen sets and of random others into the sets' memory."""
        calls = len(sets)
        if self._ended_s is not None:
            self.calls_s.append((self._spent_s(self.runner.pid) - self._ended_s) / calls)
        took_s = {each: self._collect(each) for each in sets_to_collect(chosen, sets, self.rng)}
        self.blocks_s.append(per_call_s(took_s, sets))
        self._ended_s = self._spent_s(self.runner.pid)

    def _collect(self, set_index: int) -> float:
        before_s = self._spent_s(self.runner.pid)
        self.runner.collect(set_index)
        took_s = self._spent_s(self.runner.pid) - before_s
        before_s = self._spent_s(self.judge.pid)
        self.judge.ask(Copy(set_index=set_index))
        self.copies_s.append(self._spent_s(self.judge.pid) - before_s)
        return took_s

    def _spent_s(self, pid: int) -> float:
        return TIMED_DEVICES[self.judge.device_kind].collection.spent_s(pid)

    def complaint(self, call_s: float) -> str:
        """Return why the outputs were not made when their calls had returned, "" when they were.

        A call's time is min(time by the clock, processor time): a busy machine stretches the former, a candidate that
        keeps other cores busy the latter.
        """
        call_s = min(call_s, median(self.calls_s)) if self.calls_s else call_s
        return late_work(self.blocks_s, self.copies_s, call_s=call_s, kind=self.judge.device_kind)


def collector_for(runner: RunnerProcess, judge: JudgeProcess, interface: Interface) -> Collector | None:
    """Return a runner's collector; None for the native host, which writes outputs where they belong."""
    return Collector(runner, judge) if interface.runs_in_python else None


def sets_to_collect(chosen: Sequence[int], sets: Sequence[int], rng: random.Random) -> list[int]:
    """Return the chosen sets of a block, its last call's and random others up to RANDOM_ONES, in a random order."""
    *earlier, last = sets
    others = [each for each in earlier if each not in chosen]
    missing = RANDOM_ONES - sum(each != last for each in chosen)
    more = rng.sample(others, max(0, min(missing, len(others))))
    wanted = [*{*chosen, *more, last}]
    rng.shuffle(wanted)
    return wanted


def per_call_s(took_s: dict[int, float], sets: Sequence[int]) -> float:
    """Return the mean seconds of collecting one output; the random calls stand for every call but the last."""
    *earlier, last = sets
    before = [seconds for each, seconds in took_s.items() if each != last]
    if not before:  # a block of one call
        return took_s[last]
    return (len(earlier) * mean(before) + took_s[last]) / len(sets)


def late_work(blocks_s: Sequence[float], copies_s: Sequence[float], *, call_s: float, kind: DeviceKind) -> str:
    """Return a sentence when collecting took longer than copying explains, "" when it did not.

    `copies_s` are the judge's times of copying as much at the same moments. The mean of all blocks decides: a candidate
    that puts off only some calls, or the calls of some blocks, puts off as much of its time.
    """
    if not blocks_s:
        return ""
    time_of = TIMED_DEVICES[kind].collection
    took_s, copy_s = mean(time_of.counted(blocks_s)), mean(copies_s)
    if took_s <= time_of.allowed_s(copy_s, call_s):
        return ""
    return (
        f"collecting an output took {took_s * 1e3:.3g} ms, a call {call_s * 1e3:.3g} ms and a copy {copy_s * 1e3:.3g} ms: "
        "all work has to be done when forward returns"
    )
