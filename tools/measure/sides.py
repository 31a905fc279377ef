"""The two sides of a measurement and the memory that they share, as the parent process sees them (no torch here).

The judge owns the memory: sets of inputs and outputs at different addresses. The candidate's runner and the reference
in the judge loop over the same sets, so that neither finds its data in the cache.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from ridgeline.tools.judge.messages import Check, Idle, Loop, Renew, VerifyInputs
from ridgeline.tools.records.precision import REDUCED
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass
from ridgeline.tools.runner.wire import LoopTime

if TYPE_CHECKING:
    from ridgeline.tools.judge.process import JudgeProcess


class Side(Protocol):
    """One of the two processes that alternate: a candidate's RunnerProcess, or the judge as a ReferenceSide."""

    @property
    def pid(self) -> int:
        """Return the process's id, under which the kernel counts its threads, time and page faults."""
        ...

    def loop(self, first_set: int, calls: int) -> LoopTime:
        """Let a stopped process go on and call the kernel `calls` times; call i uses set (first_set + i) % n_sets.

        A candidate is stopped again before its clock stops, so that it never runs while the clock does not.
        """
        ...

    def stop(self) -> None:
        """Stop the process, so that it takes no core from the other side."""
        ...

    def cont(self) -> None:
        """Let a stopped process go on."""
        ...


class Arena:
    """The judge's memory for one problem: the sets of inputs and outputs that both sides use."""

    def __init__(self, judge: JudgeProcess) -> None:
        self._judge = judge
        self.on_gpu = judge.device_kind is DeviceKind.CUDA
        self.n_sets = judge.problem.n_sets

    def renew(self) -> float:
        """Put new secret contents into every set and overwrite its outputs, set by set; not while anything is timed.

        Set 0 is written first and so is the coldest.

        Returns:
            How many times as long as usual a GPU took: more than 1 when it had other work. 0 on a CPU, where a stopped
            candidate has nothing that could run.
        """
        return self._judge.ask(Renew()).slowdown

    def check(self, set_index: int) -> Trial:
        """Compare a set's output with the one expected for its inputs."""
        return self._judge.ask(Check(set_index=set_index))

    def is_intact(self, set_index: int) -> bool:
        """Return whether a set holds the inputs that it was given; a CPU's runner cannot change them."""
        return not self.on_gpu or self._judge.ask(VerifyInputs(set_index=set_index)).intact

    def waited_s(self) -> float:
        """Return how long the judge waits for the GPU to do next to nothing: long when another process has work on it."""
        if not self.on_gpu:
            return 0.0
        return self._judge.ask(Idle()).seconds


class ReferenceSide:
    """The reference, looping in the judge in one mode."""

    def __init__(self, judge: JudgeProcess, mode: str = ReferenceMode.EAGER) -> None:
        self._judge = judge
        self.mode = mode

    @property
    def pid(self) -> int:
        """Return the judge's process id."""
        return self._judge.pid

    def loop(self, first_set: int, calls: int) -> LoopTime:
        """Time `calls` rotating calls of the reference in the judge, which goes on running: it is trusted."""
        start = time.perf_counter()
        self.cont()  # within the clock, as for a candidate: going on is what waits for a core on a busy machine
        reply = self._judge.ask(Loop(mode=self.mode, first_set=first_set, calls=calls))
        return LoopTime(parent_s=time.perf_counter() - start, own_s=reply.own_s)

    def stop(self) -> None:
        """Stop the judge; the next request to it lets it go on by itself."""
        self._judge.stop()

    def cont(self) -> None:
        """Let the judge go on."""
        self._judge.cont()


def eager_mode(kind: DeviceKind, measured: PrecisionClass | None) -> ReferenceMode:
    """Return the reference's mode beside a candidate: eager with TF32 on for a reduced class on a GPU, else eager."""
    return ReferenceMode.EAGER_TF32 if kind is DeviceKind.CUDA and measured in REDUCED else ReferenceMode.EAGER
