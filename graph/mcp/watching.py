"""A run's progress, and the wait for something new of it."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

from ridgeline.graph.library.run import Run
from ridgeline.graph.mcp.answers import FoundKernel, RunStatus
from ridgeline.graph.mcp.children import Child, Children, Tell
from ridgeline.graph.mcp.runs import LOG, find, fingerprint, found_kernel, place_of, read_status, with_mark
from ridgeline.tools.errors import RunError
from ridgeline.tools.wording import counted

LOOK_EVERY_S = 0.5
TELL_EVERY_S = 5.0
REFUSED = "refused"
"""Of a search that was refused before anything was measured; it left no folder."""
_HEAD = re.compile(r"\A\S+ \S+ (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) [\w.]+: ")
"""When, how grave and where of a line of run.log: nothing for somebody who waits."""


class Watching:
    """Reads the runs of one server's folder, and those that a client names by an absolute path."""

    def __init__(self, runs_dir: Path, children: Children) -> None:
        """Take the folder, and the searches that may not have made theirs yet."""
        self._runs_dir, self._children = runs_dir, children

    async def find(self, named: str) -> Path:
        """Return the folder of a run, also of one that starts.

        Raises:
            RunError: there is none; of a search that was refused, with its reason.
        """
        run = await self._place(named)
        if child := await asyncio.to_thread(self._children.refused, run):
            raise RunError(f"{run}: did not begin: {child.failure()}")
        return run

    async def _place(self, named: str) -> Path:
        """Return the same, also of a search that was refused and has no folder."""
        place = place_of(self._runs_dir, named)
        if await self._told_without_folder(place):
            return place
        try:
            return await asyncio.to_thread(find, self._runs_dir, named)
        except RunError:  # its process may have removed it since
            if await self._told_without_folder(place):
                return place
            raise

    async def status_of(self, named: str) -> RunStatus:
        """Return how far the run is that a client names.

        Raises:
            RunError: there is none, or it is damaged.
        """
        return await self.status(await self._place(named))

    async def status(self, run: Path) -> RunStatus:
        """Return how far a run is.

        Raises:
            RunError: it is gone or damaged.
        """
        if told := await self._told_without_folder(run):
            return told
        try:
            status = await asyncio.to_thread(read_status, run)
        except RunError:  # its process may have removed it since
            if told := await self._told_without_folder(run):
                return told
            raise
        failure = None if status.is_running else await asyncio.to_thread(self._children.failure, run)
        return status.model_copy(update={"error": failure}) if failure else status

    async def _told_without_folder(self, run: Path) -> RunStatus | None:
        """Return the status of a search that has made no folder yet or has removed it; None for any other run."""
        if child := await asyncio.to_thread(self._children.starting, run):
            return _without_folder(child, "starting", "its process starts")
        if child := await asyncio.to_thread(self._children.refused, run):
            return _without_folder(child, REFUSED, "refused: it did not begin", error=child.failure())
        return None

    async def wait(self, named: str, seconds: float, seen: str, tell: Tell) -> RunStatus:
        """Return a run's status once it differs from `seen`, or after so many seconds; progress is told meanwhile."""
        run = await self._place(named)
        began = time.monotonic()
        known = await asyncio.to_thread(fingerprint, run)
        status = await self.status(run)
        if not seen and (status.waiting or _rests(status)):
            return status
        seen, told_s = seen or status.seen, 0.0
        while status.seen == seen and (passed_s := time.monotonic() - began) < seconds:
            if passed_s >= told_s:
                told_s = passed_s + TELL_EVERY_S
                await tell(passed_s, seconds, progress_words(status))
            await asyncio.sleep(min(LOOK_EVERY_S, seconds - passed_s))
            now = await asyncio.to_thread(fingerprint, run)
            if now != known or status.state == "starting":
                known, status = now, await self.status(run)
        return status if status.seen != seen else await self.status(run)


def found_in(run: Run) -> FoundKernel | None:
    """Return the best kernel of a run that was opened."""
    return found_kernel(run.result["best"], is_certified=run.is_certified)


def _rests(status: RunStatus) -> bool:
    return not status.is_running and status.state != "starting"


def _without_folder(child: Child, state: str, says: str, *, error: str | None = None) -> RunStatus:
    run = child.run_dir
    status = RunStatus(
        run=str(run), name=run.name, problem="", device="", models=[], state=state, is_running=error is None,
        is_resumable=False, says=says, rounds_done=0, rounds=None, candidates=0, best=None, waiting=[], last_event="",
        error=error, tokens=0, usd=0.0, wall_s=None, log=str(run / LOG), seen="",
    )  # fmt: skip
    return with_mark(status)


def progress_words(status: RunStatus) -> str:
    """Return how far a run is, for who waits for it."""
    of = f" of {status.rounds}" if status.rounds else ""
    best = f"best {status.best.speedup:.2f}x eager" if status.best and status.best.speedup else "no kernel yet"
    where = f"round {status.rounds_done + 1}{of}" if status.is_running else status.says
    told = _HEAD.sub("", status.last_event)
    return "; ".join(filter(None, (f"{where}, {counted(status.candidates, 'candidate')}, {best}", told)))
