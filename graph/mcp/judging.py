"""One kernel judged for a client: minutes of work, told as progress, ended with its processes when it is cancelled."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import anyio

from ridgeline.graph.library.evaluation import Evaluation, aevaluate
from ridgeline.graph.mcp.answers import Verdict
from ridgeline.graph.mcp.children import Tell
from ridgeline.problems.spec import ProblemSpec
from ridgeline.tools.engine import Engine

TELL_EVERY_S = 2.0


class Judging:
    """Judges kernels one after the other: each has processes of its own, whose memory several would add up."""

    def __init__(self, engine: Engine | None = None) -> None:
        """Take an engine in the place of this machine's, as a test has one."""
        self._engine = engine
        self._turn = asyncio.Lock()

    async def judge(self, problem: ProblemSpec, kernel: str | Path, device: str, tell: Tell) -> Verdict:
        """Return the verdict on a source, or on a file.

        Raises:
            InputError: invalid input; one line says how to fix it.
            EngineError: the machine failed.
        """
        began = time.monotonic()
        async with self._turn:
            waits: list[str] = []
            judged = aevaluate(problem, kernel, device=device, engine=self._engine, on_wait=waits.append)
            # a task of its own: a scope that is cancelled would cancel each step of the clearing up as well
            task = asyncio.create_task(judged)
            try:
                while not (await asyncio.wait({task}, timeout=TELL_EVERY_S))[0]:
                    passed_s = time.monotonic() - began
                    await tell(passed_s, None, waits[-1] if waits else "compiles, verifies and times the kernel")
                return _verdict(task.result())
            finally:
                await _end(task)


async def _end(task: asyncio.Task[Evaluation]) -> None:
    """Cancel work that goes on and wait until its processes have ended."""
    if task.done():
        return
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # looked at, so that nobody misses it


def _verdict(evaluation: Evaluation) -> Verdict:
    same = ("speedup", "speedup_vs_best", "median_ms", "reference_ms", "floor_ms", "rel_error", "reason", "total_s")
    interval, precision = evaluation.speedup_ci95, evaluation.precision_class
    return Verdict(
        **{name: getattr(evaluation, name) for name in same},
        status=evaluation.status.value,
        reason_code=evaluation.reason_code.value,
        labels=[label.value for label in evaluation.labels],
        speedup_ci95=list(interval) if interval else None,
        precision_class=precision.value if precision else None,
    )
