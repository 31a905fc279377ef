"""The searches that this server began: each a process of its own, which outlives the server.

A search runs as `ridgeline run` in a session of its own, so that neither a client that goes away nor the server's end
reaches it. All that is known of it is read from its run folder; what this module adds is the time before that exists, and
what the process said if it failed. Processes that ended are reaped at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import IO

from ridgeline.checkpoints.runs.folders import LOCK_NAME, is_locked, read_run
from ridgeline.graph.mcp.runs import last_line_of
from ridgeline.tools.errors import RunError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.wording import CALLER, PROGRAM

logger = logger_of(__name__)

LONGEST_START_S = 60.0
"""A search that has not stored its settings by then, as on a machine that is busy, is answered as one that starts."""
_LOOK_EVERY_S = 0.1
_ENDED_WELL = (0, 75)
"""Exit codes of a search that is over, and of one that is parked or was told to stop."""

Tell = Callable[[float, float | None, str], Awaitable[None]]
"""Reports progress: how far, of how much, and a message."""


class Child:
    """One search's process."""

    def __init__(self, run_dir: Path, program: Sequence[str], words: Sequence[str]) -> None:
        """Start it; its standard output goes nowhere, as run.log holds the same."""
        self.run_dir = run_dir
        self.exit_code: int | None = None
        self._last_words = ""
        self._has_begun = False
        self._holder_before = self._holder()
        said = tempfile.TemporaryFile()  # noqa: SIM115  # the reaper's to close
        try:
            self.pid = _spawn([*program, *words], said.fileno())
        except OSError:
            said.close()
            raise
        threading.Thread(target=self._reap, args=(said,), name=f"reaps {self.pid}", daemon=True).start()

    @property
    def has_failed(self) -> bool:
        """Say whether the process ended as no search should."""
        return self.exit_code is not None and self.exit_code not in _ENDED_WELL

    def is_starting(self) -> bool:
        """Say whether the process lives and its run has no folder: it has made none yet, or has removed it just now."""
        return self.exit_code is None and read_run(self.run_dir) is None

    def is_refused(self) -> bool:
        """Say whether the process failed and left no run, as a search does that is refused before it measured anything."""
        return self.has_failed and read_run(self.run_dir) is None

    def is_leaving(self) -> bool:
        """Say whether the process is done with the run's folder, although it has not ended yet."""
        return self._has_begun and not is_locked(self.run_dir)

    def look(self) -> bool:
        """Say whether the process holds the run's folder and has stored what it searches."""
        # in this order: looking at a lock would keep a search from taking it
        if self._holder() == str(self.pid) and is_locked(self.run_dir):
            run = read_run(self.run_dir)
            self._has_begun = run is not None and run.has_begun
        return self._has_begun

    def failure(self) -> str:
        """Return in one line why the process failed: its last words."""
        if self._last_words:
            return self._last_words
        code = self.exit_code or 0
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"{self.run_dir}: its process {how}, without a word"

    def is_last(self) -> bool:
        """Say whether nobody else has searched in the run's folder since."""
        return self._holder() in (self._holder_before, str(self.pid))

    def _holder(self) -> str:
        """Return the number of the process that took the run's folder last; "" where none has."""
        try:
            return (self.run_dir / LOCK_NAME).read_text(encoding="ascii", errors="replace").strip()
        except OSError:  # there is none, or it was removed just now
            return ""

    def _reap(self, said: IO[bytes]) -> None:
        with said:
            _, status = os.waitpid(self.pid, 0)
            self._last_words = last_line_of(said).removeprefix("ridgeline: ")
        self.exit_code = os.waitstatus_to_exitcode(status)  # last: whoever sees it reads the words


def _spawn(command: list[str], errors: int) -> int:
    """Start a program in a session of its own, whose standard error is this descriptor; return its number."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    streams = [(os.POSIX_SPAWN_DUP2, own, number) for number, own in enumerate((null, null, errors))]
    try:
        return os.posix_spawn(
            command[0],
            command,
            {**os.environ, CALLER: PROGRAM},
            file_actions=streams,
            setsid=True,
            setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP],  # a shell's `&` has them ignored
        )
    finally:
        os.close(null)


class Children:
    """The searches of one server."""

    def __init__(self, program: Sequence[str]) -> None:
        self._program = tuple(program)
        self._by_run: dict[Path, Child] = {}

    async def start(self, run_dir: Path, words: Sequence[str], tell: Tell) -> Child:
        """Start `ridgeline run` with these words and return once the search has begun, or after LONGEST_START_S.

        Raises:
            RunError: a process of this server runs there; or this one ended at once, with its words.
        """
        known = self._by_run.get(run_dir)
        if known is not None and known.exit_code is None and not await asyncio.to_thread(known.is_leaving):
            raise RunError(f"{run_dir}: in use by process {known.pid}; wait for it, or stop it")
        child = self._by_run[run_dir] = Child(run_dir, self._program, words)
        logger.info("%s: process %d", run_dir, child.pid)
        began = time.monotonic()
        told_s = 0
        while child.exit_code is None and (passed_s := time.monotonic() - began) < LONGEST_START_S:
            if await asyncio.to_thread(child.look):
                return child
            if passed_s >= told_s + 1:
                told_s = int(passed_s)
                await tell(told_s, None, "the search's process starts")
            await asyncio.sleep(_LOOK_EVERY_S)
        if child.has_failed:
            # told here; a run that was refused has no folder that could tell anything else
            if self._by_run.get(run_dir) is child and not child.is_refused():
                del self._by_run[run_dir]
            raise RunError(child.failure())
        return child

    def starting(self, run_dir: Path) -> Child | None:
        """Return the process of this run while there is no folder of it."""
        child = self._by_run.get(run_dir)
        return child if child and child.is_starting() else None

    def refused(self, run_dir: Path) -> Child | None:
        """Return the process that failed before its run was more than a name."""
        child = self._by_run.get(run_dir)
        return child if child and child.is_refused() else None

    def failure(self, run_dir: Path) -> str | None:
        """Return why the last process of this server in a run failed; None where none did, or others searched there since."""
        child = self._by_run.get(run_dir)
        return child.failure() if child and child.has_failed and child.is_last() else None
