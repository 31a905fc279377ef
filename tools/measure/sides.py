"""The two sides of a measurement, as the parent process sees them (no torch here).

The judge owns their memory: sets of inputs and outputs at different addresses. Both sides loop over the same sets, so that
neither finds its data in the cache.

On a CPU the reference is called in a runner of its own, by the program that calls a candidate. What a request costs,
how threads wake up after a stop, which pages and caches a process finds cold: all of it is alike then. In the judge,
which has just written the sets, eager PyTorch was up to a tenth faster than the same operations in a runner. On a GPU,
and where a runner cannot make the reference, it is called in the judge.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from ridgeline.tools.errors import TrustedProcessLost
from ridgeline.tools.judge.messages import Loop
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.records.reference_mode import MODES_ON, ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.loop_time import LoopTime
from ridgeline.tools.runner.process import RunnerProcess


class Side(Protocol):
    """One of the two processes that alternate: a candidate's RunnerProcess, or the reference's."""

    @property
    def pid(self) -> int:
        """Return the process's id, under which the kernel counts its threads, time and page faults."""
        ...

    def loop(self, sets: Sequence[int]) -> LoopTime:
        """Let a stopped process go on and call the kernel on each of these sets, in this order.

        A candidate is stopped again before its clock stops, so that it never runs while the clock does not.
        """
        ...

    def stop(self) -> None:
        """Stop the process, so that it takes no core from the other side."""
        ...

    def cont(self) -> None:
        """Let a stopped process go on."""
        ...


class CandidateSide(Side, Protocol):
    """A candidate as a side: looked at while it works."""

    def calls_begun(self) -> int:
        """Return how many calls of the running loop have begun, 0 where that cannot be told."""
        ...

    def glimpse(self, set_index: int, share: float) -> bytes:
        """Return the part at a share, 0 to 1, of what lies in a set's outputs now, b"" where that cannot be told."""
        ...

    def hold(self) -> None:
        """Stop the process in the midst of a loop, which another thread waits for; it goes on with `cont`."""
        ...

    def rest(self) -> None:
        """Let threads that were stopped while they spun go to sleep; the process is stopped before and after."""
        ...

    def set_scalars(self, values: Sequence[float]) -> None:
        """Give the next calls these scalars, in the order of the signature; the process runs."""
        ...


class ReferenceSide(Side, Protocol):
    """The reference as a side: trusted."""

    is_apart: bool  # in a runner of its own, whose requests cost what a candidate's in Python cost

    def loop_empty(self, sets: Sequence[int]) -> LoopTime:
        """Do all that a loop does but for the calls."""
        ...


class ReferenceInRunner:
    """The reference, looping in eager mode in a runner of its own, which is stopped unless it loops."""

    is_apart = True

    def __init__(self, runner: RunnerProcess, judge: JudgeProcess) -> None:
        self._runner = runner
        self._judge = judge

    @property
    def pid(self) -> int:
        """Return the runner's process id."""
        return self._runner.pid

    def loop(self, sets: Sequence[int]) -> LoopTime:
        """Time a call of the reference on each set.

        Raises:
            TrustedProcessLost: its process ended, which no candidate can cause.
            ContentsRefusedError: it refuses the contents of a set, in the judge too.
        """
        return self._rested(lambda: self._runner.loop(sets), sets)

    def loop_empty(self, sets: Sequence[int]) -> LoopTime:
        """Time a loop without its calls.

        Raises:
            TrustedProcessLost: as `loop` does.
            ContentsRefusedError: it refuses those of the first set, on which it is called once for a result.
        """
        return self._rested(lambda: self._runner.loop(sets, is_empty=True), (0,))

    def _rested(self, loop: Callable[[], LoopTime], called: Sequence[int]) -> LoopTime:
        try:
            took = loop()
            self._runner.rest()
        except RunnerFailure as failure:
            if not failure.was_killed:  # the judge holds the same contents, and knows what a refusal is
                ReferenceInJudge(self._judge).loop(called)
            raise TrustedProcessLost(f"the reference's own runner failed: {failure}") from failure
        return took

    def stop(self) -> None:
        """Do nothing: it is stopped."""

    def cont(self) -> None:
        """Do nothing: it goes on when it is to loop."""


class ReferenceInJudge:
    """The reference, looping in the judge in one mode."""

    is_apart = False

    def __init__(self, judge: JudgeProcess, mode: ReferenceMode = ReferenceMode.EAGER) -> None:
        self._judge = judge
        self.mode = mode

    @property
    def pid(self) -> int:
        """Return the judge's process id."""
        return self._judge.pid

    def loop(self, sets: Sequence[int]) -> LoopTime:
        """Time a call of the reference on each set in the judge, which goes on running: it is trusted."""
        return self._looped(Loop(mode=self.mode, sets=tuple(sets)))

    def loop_empty(self, sets: Sequence[int]) -> LoopTime:
        """Time a loop without its calls in the judge."""
        return self._looped(Loop(mode=self.mode, sets=tuple(sets), is_empty=True))

    def _looped(self, request: Loop) -> LoopTime:
        start = time.perf_counter()
        self.cont()  # within the clock, as for a candidate: going on is what waits for a core on a busy machine
        reply = self._judge.ask(request)
        return LoopTime(parent_s=time.perf_counter() - start, own_s=reply.own_s)

    def stop(self) -> None:
        """Stop the judge; the next request to it lets it go on by itself."""
        self._judge.stop()

    def cont(self) -> None:
        """Let the judge go on."""
        self._judge.cont()


def eager_mode(kind: DeviceKind, measured: PrecisionClass | None) -> ReferenceMode:
    """Return the reference's mode beside a candidate: eager, with TF32 on for a reduced class where PyTorch has that."""
    is_reduced = measured is not None and measured.is_reduced
    reduced = ReferenceMode.EAGER_TF32
    return reduced if is_reduced and reduced in MODES_ON[kind] else ReferenceMode.EAGER
