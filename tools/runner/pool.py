"""The runners of one device: one at work, and for Python ones the next, started ahead with its imports done."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ridgeline.tools.engine import BenchmarkTask, VerifyTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.records.results import Timing, Verdict
from ridgeline.tools.records.vocabulary import Interface
from ridgeline.tools.runner.plan import runner_plan
from ridgeline.tools.runner.process import RunnerProcess, was_killed
from ridgeline.tools.runner.start import RunnerStart
from ridgeline.tools.runner.triton_ahead import kernels_ahead
from ridgeline.tools.sandbox.sandbox import Sandbox

logger = logging.getLogger(__name__)

M = TypeVar("M", Verdict, Timing)

RUNNER_LOG_VARIABLE = "RIDGELINE_RUNNER_LOG"
_MANY_CORES = 4
_SHORT_CALL_S = 5.0
"""Below this limit for a call nothing starts beside a candidate: on few cores it would have the candidate stopped."""


class RunnerPool:
    """Starts runners. `close()` ends those that wait."""

    def __init__(self, cache_dir: Path) -> None:
        self._cache_dir = cache_dir
        self._waiting: list[RunnerStart] = []
        # one for this candidate's timing, one for the next candidate, where they do not take each other's cores
        self._most = 2 if len(measurement_cores()) >= _MANY_CORES else 1

    def start(self, sandbox: Sandbox, task: VerifyTask | BenchmarkTask, problem: LoadedProblem) -> RunnerProcess:
        """Return a runner that holds the task's candidate.

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
        _log_runner(task)
        if any(not waiting.fits(plan, problem) for waiting in self._waiting):
            self.close()
        return RunnerProcess(sandbox, plan, problem, ahead=self._waiting.pop(0) if self._waiting else None)

    def start_ahead(self, sandbox: Sandbox, task: VerifyTask | BenchmarkTask, problem: LoadedProblem) -> None:
        """Start the next runners like this one, while nothing is timed. A fault here comes again where it is needed."""
        if task.problem.interface == Interface.C or task.problem.call_timeout_s < _SHORT_CALL_S:
            return
        plan = runner_plan(task.problem, task.build, self._cache_dir, candidate=task.candidate)
        with contextlib.suppress(EngineError, OSError):
            while len(self._waiting) < self._most:
                self._waiting.append(RunnerStart(sandbox, plan, problem))

    def park(self) -> None:
        """Have those that wait take no core from a measurement: they finish their imports and are stopped."""
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


def _log_runner(task: VerifyTask | BenchmarkTask) -> None:
    """Append one line for each runner to the file that a test asks for."""
    path = os.environ.get(RUNNER_LOG_VARIABLE)
    if not path:
        return
    name = type(task).__name__
    entry = {"candidate_id": task.candidate.id, "purpose": task.purpose, "task": name, "pid": os.getpid()}
    with open(path, "a", encoding="utf-8") as log:
        log.write(json.dumps(entry | {"time": time.time()}) + "\n")


def again_if_killed(measure: Callable[[], M]) -> M:
    """Return what `measure` finds, asked once more when its runner was killed as nobody but the machine should."""
    result = measure()
    if not was_killed(result.status, result.reason):
        return result
    logger.warning("a runner was %s: measuring again", result.reason)
    return measure()
