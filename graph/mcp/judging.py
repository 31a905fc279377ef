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
        doing = ["waits for a kernel that is judged before it"]
        # a task of its own: a scope that is cancelled would cancel each step of the clearing up as well
        task = asyncio.create_task(self._in_turn(problem, kernel, device, doing))
        try:
            while not (await asyncio.wait({task}, timeout=TELL_EVERY_S))[0]:
                await tell(time.monotonic() - began, None, doing[-1])
            return _verdict(task.result())
        finally:
            await _end(task)

    async def _in_turn(self, problem: ProblemSpec, kernel: str | Path, device: str, doing: list[str]) -> Evaluation:
        """Judge the kernel when its turn has come; `doing` gets what is done, as it begins."""
        async with self._turn:
            doing.append("compiles, verifies and times the kernel")
            return await aevaluate(problem, kernel, device=device, engine=self._engine, on_wait=doing.append)


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
    return Verdict.model_validate(evaluation.to_dict())
