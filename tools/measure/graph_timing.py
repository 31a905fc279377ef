"""The time of a launch-bound kernel in a CUDA graph: its work without the launches, beside the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Protocol

from ridgeline.tools.judge.messages import Check, Renew
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import Label, ReasonCode
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.loop_time import LoopTime

logger = logger_of(__name__)

CALLS = 64
REPLAYS = 10


class Capturing(Protocol):
    """A runner that can record calls and replay them."""

    def capture(self, sets: Sequence[int]) -> bool:
        """Record a call on each set; False where they cannot be recorded.

        A call that does what a capture forbids (it synchronises, allocates, or launches to another stream) gets an error
        of CUDA's, which ends the host: the runner is of no use after it.
        """
        ...

    def replay(self) -> LoopTime:
        """Run the recorded calls."""
        ...


def with_graph_time(timing: Timing, runner: Capturing, judge: JudgeProcess) -> Timing:
    """Return the timing with `graph_ms`, for a GPU's kernel whose launch takes longer than its work.

    Raises:
        RunnerFailure: a call crashed, hung or broke out where it was captured or replayed.
    """
    if not TIMED_DEVICES[judge.device_kind].has_graphs or Label.LAUNCH_BOUND not in timing.labels:
        return timing
    try:
        return replace(timing, graph_ms=time_graph(runner, judge))
    except RunnerFailure as fault:
        if fault.finding.code is not ReasonCode.CUDA_ERROR:
            raise
        # the call synchronises or allocates, which a capture forbids: no fault of a kernel
        logger.info("no CUDA graph of this kernel: %s", fault.finding.reason)
        return timing


def time_graph(runner: Capturing, judge: JudgeProcess) -> float | None:
    """Return the milliseconds of a call in a replayed graph, or None where calls cannot be captured or go wrong there.

    Contents are renewed before every replay, so a graph of stale data gives a wrong output. The time is the runner's own
    clock: it informs, and is never a score.

    Raises:
        Exception: as the runner does when it dies; a capture error inside a call ends the host too, as a CUDA error.
    """
    calls = min(CALLS, judge.problem.n_sets)
    if not runner.capture(range(calls)):
        return None
    times = []
    for _ in range(REPLAYS):
        judge.ask(Renew())
        times.append(runner.replay().own_s / calls)
        if not judge.ask(Check(set_index=calls - 1)).passed:
            return None
    return 1e3 * median(times)
