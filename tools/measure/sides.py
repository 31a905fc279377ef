"""The two sides of a measurement, as the parent process sees them (no torch here).

The judge owns their memory: sets of inputs and outputs at different addresses. The candidate's runner and the reference
in the judge loop over the same sets, so that neither finds its data in the cache.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from ridgeline.tools.judge.messages import Loop
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.records.reference_mode import MODES_ON, ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass
from ridgeline.tools.runner.wire import LoopTime


class Side(Protocol):
    """One of the two processes that alternate: a candidate's RunnerProcess, or the judge as a ReferenceSide."""

    @property
    def pid(self) -> int:
        """Return the process's id, under which the kernel counts its threads, time and page faults."""
        ...

    def loop(self, sets: Sequence[int]) -> LoopTime:
        """Let a stopped process go on and call the kernel on each of these sets, in this order.

        A candidate is stopped again before its clock stops, so that it never runs while the clock does not.
        """
        ...

    def calls_to_come(self) -> int | None:
        """Return how many calls of the running loop have not begun; None where that cannot be told."""
        ...

    def stop(self) -> None:
        """Stop the process, so that it takes no core from the other side."""
        ...

    def cont(self) -> None:
        """Let a stopped process go on."""
        ...


class ReferenceSide:
    """The reference, looping in the judge in one mode."""

    def __init__(self, judge: JudgeProcess, mode: ReferenceMode = ReferenceMode.EAGER) -> None:
        self._judge = judge
        self.mode = mode

    @property
    def pid(self) -> int:
        """Return the judge's process id."""
        return self._judge.pid

    def loop(self, sets: Sequence[int]) -> LoopTime:
        """Time a call of the reference on each set in the judge, which goes on running: it is trusted."""
        start = time.perf_counter()
        self.cont()  # within the clock, as for a candidate: going on is what waits for a core on a busy machine
        reply = self._judge.ask(Loop(mode=self.mode, sets=tuple(sets)))
        return LoopTime(parent_s=time.perf_counter() - start, own_s=reply.own_s)

    def calls_to_come(self) -> int | None:
        """Return None: the judge is told all sets at once."""
        return None

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
