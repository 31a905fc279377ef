"""The two sides of a measurement and the memory they share, as the parent process sees them (no torch here).

The judge owns the memory: sets of inputs and outputs at different addresses. The candidate's runner and the judge's own
eager reference both loop over the same sets, so that neither finds its data in the cache.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from ridgeline.tools.judge.messages import Check, Idle, Loop, Renew, VerifyInputs
from ridgeline.tools.machine.process_use import cpu_seconds, page_faults, thread_count
from ridgeline.tools.records.precision import REDUCED
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass
from ridgeline.tools.runner.wire import LoopTime

if TYPE_CHECKING:
    from ridgeline.tools.judge.process import JudgeProcess
    from ridgeline.tools.runner.process import RunnerProcess


class Side(Protocol):
    """One of the two programs that alternate: a candidate's runner, or the reference in the judge."""

    def loop(self, first_set: int, calls: int) -> LoopTime:
        """Let a paused process go on and call the kernel `calls` times; call i uses set (first_set + i) % n_sets.

        A candidate is paused again before its clock stops, so that it never runs while the clock does not.
        """
        ...

    def pause(self) -> None:
        """Stop the process, so that it takes no core from the other side."""
        ...

    def resume(self) -> None:
        """Let a paused process go on."""
        ...

    def cpu_seconds(self) -> float:
        """Return the processor time that the process has used so far, all threads."""
        ...

    def threads(self) -> int:
        """Return how many threads the process has now."""
        ...

    def page_faults(self) -> int:
        """Return the minor page faults of the process so far."""
        ...


class Arena:
    """The judge's memory for one problem: the sets of inputs and outputs that both sides use."""

    def __init__(self, judge: JudgeProcess, n_sets: int, *, on_gpu: bool = False) -> None:
        self._judge = judge
        self.on_gpu = on_gpu
        self.n_sets = n_sets

    def renew(self) -> float:
        """Put new secret contents into every set and overwrite its outputs, set by set; not while anything is timed.

        Set 0 is written first and so is the coldest. Returns how many times as long as usual a GPU took for it: more
        than 1 when it had other work; 0 on a CPU, where a stopped candidate has nothing that could run.
        """
        return self._judge.ask(Renew()).slowdown

    def check(self, set_index: int) -> Trial:
        """Compare the output that lies in a set now with the one expected for that set's inputs."""
        return self._judge.ask(Check(set_index=set_index))

    def is_intact(self, set_index: int) -> bool:
        """Return whether a set still holds the inputs that it was given (a CPU's runner cannot change them)."""
        return not self.on_gpu or self._judge.ask(VerifyInputs(set_index=set_index)).intact

    def waited_s(self) -> float:
        """Return how long a GPU takes to do next to nothing for the judge: long when somebody else has work on it."""
        if not self.on_gpu:
            return 0.0
        return self._judge.ask(Idle()).seconds


class RunnerSide:
    """A candidate in its runner."""

    def __init__(self, runner: RunnerProcess) -> None:
        self._runner = runner

    def loop(self, first_set: int, calls: int) -> LoopTime:
        """Time `calls` rotating calls in the runner, which is stopped before and after.

        Raises:
            RunnerFailure: the runner died, hung or broke the protocol; holds the status and the reason.
        """
        return self._runner.loop(first_set, calls)

    def pause(self) -> None:
        """Stop the runner."""
        self._runner.stop()

    def resume(self) -> None:
        """Let the runner go on."""
        self._runner.cont()

    def cpu_seconds(self) -> float:
        """Return the runner's processor time."""
        return cpu_seconds(self._runner.pid)

    def threads(self) -> int:
        """Return the runner's threads."""
        return thread_count(self._runner.pid)

    def page_faults(self) -> int:
        """Return the runner's minor page faults."""
        return page_faults(self._runner.pid)


class EagerSide:
    """The reference, looping in the judge: `mode` is "eager", "eager_tf32", "compile" or "compile_max_autotune"."""

    def __init__(self, judge: JudgeProcess, mode: str = "eager") -> None:
        self._judge = judge
        self.mode = mode

    def loop(self, first_set: int, calls: int) -> LoopTime:
        """Time `calls` rotating calls of the reference in the judge, which goes on running: it is trusted."""
        start = time.perf_counter()
        self.resume()  # within the clock, as for a candidate: going on is what waits for a core on a busy machine
        reply = self._judge.ask(Loop(mode=self.mode, first_set=first_set, calls=calls))
        return LoopTime(parent_s=time.perf_counter() - start, own_s=reply.own_s)

    def pause(self) -> None:
        """Stop the judge; the next request to it lets it go on by itself."""
        self._judge.stop()

    def resume(self) -> None:
        """Let the judge go on."""
        self._judge.cont()

    def cpu_seconds(self) -> float:
        """Return the judge's processor time."""
        return cpu_seconds(self._judge.pid)

    def threads(self) -> int:
        """Return the judge's threads."""
        return thread_count(self._judge.pid)

    def page_faults(self) -> int:
        """Return the judge's minor page faults."""
        return page_faults(self._judge.pid)


def eager_mode(kind: DeviceKind, measured: PrecisionClass | None) -> str:
    """Return how the reference runs beside a candidate of this class: a GPU's reduced one faces eager with TF32 on."""
    return "eager_tf32" if kind is DeviceKind.CUDA and measured in REDUCED else "eager"
