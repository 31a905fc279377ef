"""The wait until no thread of a stopped process runs any more."""

from __future__ import annotations

import os
import time

from ridgeline.tools.machine.process_use import Threads
from ridgeline.tools.sandbox.sandbox import SandboxedProcess

_AGAIN_S = 0.01
"""After so long the process is told to stop once more: who held it in a block may have let it go on since (see `hold`)."""


def await_rest(threads: Threads, process: SandboxedProcess, limit_s: float) -> bool:
    """Wait until every thread of a process that was told to stop rests, and return whether they do.

    A process one of whose threads stays in the kernel for longer is killed.
    """
    now = time.monotonic()
    until, again = now + limit_s, now + _AGAIN_S
    while not threads.are_at_rest():
        os.sched_yield()  # a thread may need this very core to stop: 0.2 ms, and up to 4 ms without the yield
        now = time.monotonic()
        if now > again:
            process.stop()
            again = now + _AGAIN_S
        if now > until:
            process.kill()
            return False
    return True
