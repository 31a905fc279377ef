"""Bring a Python runner's outputs into the judge's memory after a block, so that no work is done there unmeasured.

A runner keeps each call's output in its own memory. On a CPU the parent reads it there while the process is stopped: no
code of the candidate runs between the clock's end and the comparison, so there is nothing to measure.

A GPU's memory cannot be read from outside, nor a process's where the kernel refuses it (Yama; root in a container without
CAP_SYS_PTRACE). There the runner copies outputs when asked, outside of any timed block, and a candidate that shares the
runner's Python could put its work off until then: for some calls, in part, or for a whole block until its first output
is asked for. After every block the last call's output and random others are therefore collected in a random order, and
the time of a block's collections counts for all of its calls.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

from ridgeline.tools.judge.messages import Copy
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.measure.timed_side import Collect
from ridgeline.tools.records.vocabulary import Interface
from ridgeline.tools.runner.process import RunnerProcess

RANDOM_ONES = 3
"""Outputs collected of a block's calls before the last one."""
COPIES = 2.0
"""Collecting an output may take COPIES * the judge's own copy + SHARE_OF_CALL * a call + REQUEST_S. The copies go out and
back."""
SHARE_OF_CALL = 0.25
REQUEST_S = 5e-4
"""The time in which a stopped process goes on and answers."""
DROPPED = 1 / 8
"""Part of the blocks, the slowest, that does not count: a clock measures other programs' work too."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one stopped runner's outputs in its memory: nothing of the candidate's runs meanwhile."""

    runner: RunnerProcess

    def __call__(self, chosen: Sequence[int], sets: Sequence[int]) -> None:
        """Bring the outputs of the chosen sets into the sets' memory."""
        self.runner.bring(chosen, sets)

    def complaint(self, call_s: float) -> str:
        """Return "": what was read had been made when the process was stopped."""
        return ""


@dataclass(slots=True)
class Collector:
    """Lets one runner copy its outputs into the judge's memory."""

    runner: RunnerProcess
    judge: JudgeProcess
    blocks_s: list[float] = field(default_factory=list)  # a block's collections, averaged over its calls
    copies_s: list[float] = field(default_factory=list)  # the judge's copy of as much, right after each collection
    rng: random.Random = field(default_factory=random.SystemRandom)

    def __call__(self, chosen: Sequence[int], sets: Sequence[int]) -> None:
        """Let the runner copy the outputs of the chosen sets and of random others into the sets' memory."""
        took_s = {each: self._collect(each) for each in sets_to_collect(chosen, sets, self.rng)}
        self.blocks_s.append(per_call_s(took_s, sets))

    def _collect(self, set_index: int) -> float:
        began_s = time.perf_counter()
        self.runner.collect(set_index)
        collected_s = time.perf_counter()
        self.judge.ask(Copy(set_index=set_index))
        self.copies_s.append(time.perf_counter() - collected_s)
        return collected_s - began_s

    def complaint(self, call_s: float) -> str:
        """Return why the outputs were not made when their calls had returned, "" when they were."""
        return late_work(self.blocks_s, self.copies_s, call_s=call_s)


def collector_for(runner: RunnerProcess, judge: JudgeProcess, interface: Interface) -> Collect | None:
    """Return what brings a runner's outputs; None for the native host, which writes outputs where they belong."""
    if not interface.runs_in_python:
        return None
    return Reader(runner) if runner.leaves_outputs else Collector(runner, judge)


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


def late_work(blocks_s: Sequence[float], copies_s: Sequence[float], *, call_s: float) -> str:
    """Return a sentence when collecting took longer than copying explains, "" when it did not.

    `copies_s` are the judge's times of copying as much at the same moments. The mean of the blocks that count decides: a
    candidate that puts off only some calls, or the calls of some blocks, puts off as much of its time.
    """
    if not blocks_s:
        return ""
    counted = sorted(blocks_s)[: len(blocks_s) - int(DROPPED * len(blocks_s))]
    took_s, copy_s = mean(counted), mean(copies_s)
    if took_s <= COPIES * copy_s + SHARE_OF_CALL * call_s + REQUEST_S:
        return ""
    return (
        f"collecting an output took {took_s * 1e3:.3g} ms, a call {call_s * 1e3:.3g} ms and a copy {copy_s * 1e3:.3g} ms: "
        "all work has to be done when forward returns"
    )
