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
from ridgeline.tools.judge_process import LoadedProblem
from ridgeline.tools.kernels_ahead import kernels_ahead
from ridgeline.tools.records import Interface, Timing, Verdict
from ridgeline.tools.runner_plans import runner_plan
from ridgeline.tools.runner_process import RunnerProcess, was_killed
from ridgeline.tools.runner_start import RunnerStart
from ridgeline.tools.sandbox import Sandbox

logger = logging.getLogger(__name__)

M = TypeVar("M", Verdict, Timing)

RUNNER_LOG_VARIABLE = "RIDGELINE_RUNNER_LOG"
_SHORT_CALL_S = 5.0
"""Below this limit for a call nothing starts beside a candidate: on few cores it would have the candidate stopped."""


class RunnerPool:
    """Starts runners. `close()` ends the one that waits."""

    def __init__(self, cache_dir: Path) -> None:
        self._cache_dir = cache_dir
        self._waiting: RunnerStart | None = None

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
        ahead, self._waiting = self._waiting, None
        if ahead is not None and not ahead.fits(plan, problem):
            ahead.close()
            ahead = None
        return RunnerProcess(sandbox, plan, problem, ahead=ahead)

    def start_ahead(self, sandbox: Sandbox, task: VerifyTask | BenchmarkTask, problem: LoadedProblem) -> None:
        """Start the next runner like this one, while nothing is timed. A fault here comes again where it is needed."""
        is_python = task.problem.interface != Interface.C
        if not is_python or self._waiting is not None or task.problem.call_timeout_s < _SHORT_CALL_S:
            return
        plan = runner_plan(task.problem, task.build, self._cache_dir, candidate=task.candidate)
        with contextlib.suppress(EngineError):
            self._waiting = RunnerStart(sandbox, plan, problem)

    def park(self) -> None:
        """Have the waiting runner take no core from a measurement: it finishes its imports and is stopped."""
        if self._waiting is None:
            return
        try:
            self._waiting.park()
        except EngineError as error:
            logger.info("%s", error)
            self.close()

    def close(self) -> None:
        """End the runner that waits."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.close()


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
