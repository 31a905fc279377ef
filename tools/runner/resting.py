"""The wait until no thread of a stopped process runs any more."""

from __future__ import annotations

import os
import time

from ridgeline.tools.machine.process_use import Threads
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.deadline import Deadline
from ridgeline.tools.runner.failures import RunnerFailure
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


def expect_rest(threads: Threads, process: SandboxedProcess, limit_s: float, deadline: Deadline) -> None:
    """Wait for the same, within what is left of the candidate's time, to which the wait is charged.

    Raises:
        RunnerFailure: a thread goes on for longer; the candidate is late where that time is over before the limit is.
    """
    left_s = deadline.left_s
    with deadline.charged():
        is_at_rest = await_rest(threads, process, min(limit_s, left_s))
    if not is_at_rest and left_s < limit_s:
        raise deadline.passed("after an answer")
    if not is_at_rest:
        reason = "a thread went on in a system call after the answer: finish all work before returning"
        raise RunnerFailure(ReasonCode.BACKGROUND_WORK, reason)
