"""A side that is a process (native/side.cpp), and a judge of the sets in the file that it works on."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.tools.measure.answering import Answering

from ridgeline.tools.judge.messages import Check, DrawNext, FindUnasked, Idle, Renew, Supersede, VerifyInputs
from ridgeline.tools.judge.replies import Done, Idled, Intact, Renewed, Unasked
from ridgeline.tools.measure.statistics import StoppingRule
from ridgeline.tools.measure.timed_side import WarmUp
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.results import Trial
from ridgeline.tools.runner.loop_time import LoopTime

N_SETS = 24
ELEMENTS = 1 << 16
SETTINGS = TimingSettings(
    rule=StoppingRule(smallest=8, largest=12, time_s=1.0),
    warm_up=WarmUp(calls=10, seconds=0.03),
    block_s=0.006,
    idle_s=0.1,
    checks=2,
)


class ProcessSide:
    """A side that is a process: one line asks for a loop, one line answers.

    It counts in a file which calls of the loop have begun, as a runner does by its tickets: contents that change while a
    block runs then change in time.
    """

    is_apart = False

    def __init__(self, program: Path, judge: "FileJudge", work: int, mode: str) -> None:
        n_sets, _, elements = judge.memory.shape
        with tempfile.NamedTemporaryFile(prefix="begun-", dir=Path(judge.memory.filename).parent) as counter:
            self.begun = np.memmap(counter.name, dtype=np.int64, mode="w+", shape=1)
            words = [program, judge.memory.filename, counter.name, n_sets, elements, work, mode]
            self.process = subprocess.Popen(
                [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            self._answer()  # it has opened the files
        self.pid = self.process.pid
        self.stops = 0
        self.stopped = False

    def loop(self, sets: Sequence[int]) -> LoopTime:
        assert self.process.stdin
        start = time.perf_counter()
        self.cont()
        self.process.stdin.write(f"loop {len(sets)} {' '.join(map(str, sets))}\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.stop()
        self.begun[0] = 0  # of no call that runs, until the next loop
        return LoopTime(parent_s=time.perf_counter() - start, own_s=int(answer[1]) / 1e9)

    def _answer(self) -> list[str]:
        assert self.process.stdout
        return self.process.stdout.readline().split()

    def loop_empty(self, sets: Sequence[int]) -> LoopTime:
        return LoopTime(parent_s=0.0, own_s=0.0)  # its calls need no ticket of the parent's

    def calls_begun(self) -> int:
        return int(self.begun[0])

    def glimpse(self, set_index: int, share: float) -> bytes:
        return b""

    def stop(self) -> None:
        self.stops += 1
        self.stopped = True
        os.kill(self.pid, signal.SIGSTOP)

    def hold(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def cont(self) -> None:
        self.stopped = False
        os.kill(self.pid, signal.SIGCONT)

    def rest(self) -> None:
        """Its threads do not spin."""

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class FileJudge(Answering):
    """A judge of sets of (x, out) in one shared file; refilled and compared by numpy."""

    def __init__(self, path: Path, n_sets: int = N_SETS, elements: int = ELEMENTS) -> None:
        super().__init__(n_sets)
        self.memory = np.memmap(path, dtype=np.float32, mode="w+", shape=(n_sets, 2, elements))
        self.rng = np.random.default_rng(0)
        self.refills = 0
        self.checked: list[int] = []
        self.changes = 0  # of contents while a block ran
        self.slowdown = 0.0  # of renewals

    def renew(self, _request: Renew) -> Renewed:
        self.refills += 1
        fresh = self.rng.standard_normal(self.memory.shape[2], dtype=np.float32)
        for i in range(self.n_sets):
            self.memory[i, 0] = np.roll(fresh, i) + self.refills
            self.memory[i, 1] = np.nan
        return Renewed(slowdown=self.slowdown)

    def find_unasked(self, request: FindUnasked) -> Unasked:
        return Unasked(written=tuple(i for i in request.sets if not np.isnan(self.memory[i, 1]).all()))

    def verify_inputs(self, _request: VerifyInputs) -> Intact:
        return Intact(intact=True)

    def draw_next(self, _request: DrawNext) -> Done:
        return Done()

    def supersede(self, request: Supersede) -> Done:
        self.changes += 1
        self.memory[request.set_index, 0] = self.memory[request.like, 0]
        return Done()

    def idle(self, _request: Idle) -> Idled:
        return Idled(seconds=0.0)

    def check(self, request: Check) -> Trial:
        self.checked.append(request.set_index)
        x, out = self.memory[request.set_index]
        expected = 3 * x + 1
        with np.errstate(invalid="ignore"):
            error = float(np.linalg.norm(out - expected) / np.linalg.norm(expected - expected.mean()))
        return Trial(name="timed", rel_error=error, gate=1e-5, passed=error < 1e-5)
