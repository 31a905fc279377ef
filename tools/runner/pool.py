"""The runners of one device: the one at work, and Python runners that were started ahead for the next candidates."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ridgeline.tools.engine import BenchmarkTask, Contender, VerifyTask
from ridgeline.tools.errors import EngineError, RidgelineError
from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.results import Comparison, FailedComparison, Timing, Verdict
from ridgeline.tools.records.vocabulary import Status
from ridgeline.tools.runner.deadline import Deadline
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.plan import RUNNERS, runner_plan
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.runner.start import RunnerStart
from ridgeline.tools.runner.triton_ahead import kernels_ahead
from ridgeline.tools.sandbox.sandbox import Sandbox

logger = logger_of(__name__)

Held = VerifyTask | BenchmarkTask | Contender
"""What names the candidate that a runner holds, and for what."""
M = TypeVar("M", bound=Verdict | Timing | Comparison | FailedComparison)

_MANY_CORES = 4
_SHORT_CALL_S = 5.0
"""With a shorter limit for a call no runner starts beside a candidate: on few cores that could make the call time out."""


class RunnerPool:
    """Starts runners. `close()` ends those that wait."""

    def __init__(self, cache_dir: Path) -> None:
        self._cache_dir = cache_dir
        self._waiting: list[RunnerStart] = []
        self._started: list[RunnerProcess] = []  # since the last measurement began
        self._was_killed = False  # was a runner while its candidate was loaded
        # With many cores: one for this candidate's timing, one for the next candidate.
        self._most = 2 if len(measurement_cores()) >= _MANY_CORES else 1

    def start(
        self,
        sandbox: Sandbox,
        task: Held,
        problem: LoadedProblem,
        deadline: Deadline | None = None,
    ) -> RunnerProcess:
        """Return a runner that holds the task's candidate; waiting for it is charged to `deadline`.

        Raises:
            RunnerFailure: the candidate failed while it was loaded.
            EngineError: the sandbox could not be set up.
        """
        kernels = kernels_ahead(task.problem, task.candidate, task.build, sandbox=sandbox, cache_dir=self._cache_dir)
        is_sanitized = isinstance(task, VerifyTask) and task.sanitized
        plan = runner_plan(
            task.problem,
            task.build,
            self._cache_dir,
            candidate=task.candidate,
            sanitized=is_sanitized,
            kernels=kernels,
        )
        purpose, name = task.purpose, task.name
        logger.info("process %d starts a runner: candidate %s, %s, %s", os.getpid(), task.candidate.id, purpose, name)
        if any(not waiting.fits(plan, problem) for waiting in self._waiting):
            self.close()
        try:
            ahead = self._waiting.pop(0) if self._waiting else None
            runner = RunnerProcess(sandbox, plan, problem, ahead=ahead, deadline=deadline)
        except RunnerFailure as failure:
            self._was_killed |= failure.was_killed
            raise
        self._started.append(runner)
        return runner

    def start_ahead(self, sandbox: Sandbox, task: Held, problem: LoadedProblem) -> None:
        """Start the next runners like this one, while nothing is timed. A fault is ignored: the runner's own start shows it."""
        if not RUNNERS[task.problem.interface].starts_ahead or task.problem.call_timeout_s < _SHORT_CALL_S:
            return
        with contextlib.suppress(RidgelineError, OSError):
            plan = runner_plan(task.problem, task.build, self._cache_dir, candidate=task.candidate)
            while len(self._waiting) < self._most:
                self._waiting.append(RunnerStart(sandbox, plan, problem))

    def again_if_killed(self, measure: Callable[[], M]) -> M:
        """Return what `measure` finds, asked once more when something outside killed one of its runners.

        The killer may be the out-of-memory killer or a person who cleans up. A candidate can also kill its own runner, so
        a kill is worth one repetition and no more.
        """
        self._started.clear()
        self._was_killed = False
        result = measure()
        was_killed = self._was_killed or any(runner.was_killed for runner in self._started)
        if result.status is not Status.RUNTIME_ERROR or not was_killed:
            return result
        logger.warning("something outside killed a runner: measuring again")
        return measure()

    def park(self) -> None:
        """Let the waiting runners finish their imports and stop them: a stopped runner takes no core from a measurement."""
        try:
            for waiting in self._waiting:
                waiting.park()
        except EngineError as error:
            logger.info("%s", error)
            self.close()

    def close(self) -> None:
        """End the runners that wait."""
        while self._waiting:
            self._waiting.pop().close()
