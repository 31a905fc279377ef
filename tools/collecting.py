"""Collecting outputs from a Python runner: the copy is timed, so that no output is made while it is collected.

The runner keeps each call's output and copies it into the judge's memory when asked, outside of any timed block. A
candidate that shares the runner's Python could do its work only then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ridgeline.tools.judge_process import JudgeProcess
from ridgeline.tools.records import Interface
from ridgeline.tools.runner_process import RunnerProcess

FEWEST = 4
_COPIES = 2.0  # a collection may take this many of the judge's
_SHARE_OF_CALL = 0.5  # beside the copies: work that is put off takes a whole call
_REQUEST_S = 5e-4  # a stopped process that goes on


@dataclass(slots=True)
class Collector:
    """Brings one runner's outputs into the arena."""

    runner: RunnerProcess
    judge: JudgeProcess
    took_s: list[float] = field(default_factory=list)
    judges_s: list[float] = field(default_factory=list)  # the judge's copies of as much, right after each

    def __call__(self, set_index: int) -> None:
        """Let the runner put a set's kept output into the set's memory."""
        self.took_s.append(self.runner.collect(set_index).parent_s)
        start = time.perf_counter()
        self.judge.request("copy", set=set_index)
        self.judges_s.append(time.perf_counter() - start)

    def complaint(self, call_s: float) -> str:
        """Return why these outputs were not there when their calls had returned, "" when they were."""
        return late_work(self.took_s, self.judges_s, call_s=call_s)


def collector_for(runner: RunnerProcess, judge: JudgeProcess, interface: str) -> Collector | None:
    """Return a runner's collector; None for the native host, which writes outputs where they belong."""
    return Collector(runner, judge) if interface != Interface.C else None


def late_work(took_s: Sequence[float], judges_s: Sequence[float], *, call_s: float) -> str:
    """Return a sentence when even a quick collection took as long as a call; "" when copying explains it.

    `judges_s` is what the judge, asked at the same time to copy as much, took to answer: it waits for cores as the runner
    does. The lower quartile of the runner's, because a candidate may have some outputs ready; the upper of the judge's.
    """
    if len(took_s) < FEWEST:
        return ""
    quick_s = sorted(took_s)[len(took_s) // 4]
    copy_s = sorted(judges_s)[(3 * len(judges_s)) // 4]
    if quick_s <= _COPIES * copy_s + _SHARE_OF_CALL * call_s + _REQUEST_S:
        return ""
    return (
        f"collecting an output took {quick_s * 1e3:.3g} ms, a call {call_s * 1e3:.3g} ms and a copy {copy_s * 1e3:.3g} ms: "
        "all work has to be done when forward returns"
    )
