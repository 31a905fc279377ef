"""The looks at a process behind the clock: threads that it starts late, and work while it has nothing to do.

Verification and timing share the rule for threads, and that for work but for two differences.

- A verification looks at every kernel, so its look is short. Ticks of /proc are too coarse for it, so that it reads the exact
  clocks. A busy machine can put off into one short look what threads spin, so that another look follows before it blames.
- A timing looks for longer, and one look decides: with a second one, work would pass that comes in bursts. What a busy
  machine puts off, and what ticks are rounded by, has room in IDLE_TICKS_S.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from ridgeline.tools.machine.process_use import ProcessorTime, cpu_seconds, thread_count
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.vocabulary import ReasonCode

SPIN_S = 0.02
"""After so long no thread spins any more that waited for its next piece of work: see python_env.py."""
IDLE_SHARE = 0.05
"""Share of one core above which a process without a request is at work behind the clock's back."""
IDLE_TICKS_S = 0.02
"""/proc counts user and system time in ticks of 10 ms: two of them may be rounding."""
_IDLE_WINDOW_S = 0.05
_IDLE_LOOKS = 2


class Watched(Protocol):
    """A process that is stopped between its requests."""

    @property
    def pid(self) -> int:
        """Return the process's id."""
        ...

    def cont(self) -> None:
        """Let the process go on."""
        ...

    def stop(self) -> None:
        """Stop the process."""
        ...


def late_threads(pid: int, warm: int) -> int:
    """Return how many threads a process has beyond the `warm` ones that its first calls left; 0 where it has no more."""
    return max(0, thread_count(pid) - warm)


def work_when_verified(process: Watched, call: Callable[[], object]) -> Finding | None:
    """Return the finding for a process that works after a call in every look; it is stopped before and after.

    `call` is one request, made anew for each look.
    """
    share = 0.0
    for _ in range(_IDLE_LOOKS):
        call()
        used_s, waited_s = _watch(process, _IDLE_WINDOW_S, _exact_clock)
        process.stop()
        share = used_s / waited_s
        if share <= IDLE_SHARE:
            return None
    reason = f"idle between calls it uses {share:.0%} of a core: work goes on behind the clock"
    return Finding(code=ReasonCode.BACKGROUND_WORK, reason=reason)


def work_when_timed(process: Watched, window_s: float) -> Finding | None:
    """Return the finding for a process that works in one look of `window_s`; it is left running."""
    used_s, waited_s = _watch(process, window_s, _ticks)
    if used_s <= IDLE_SHARE * waited_s + IDLE_TICKS_S:
        return None
    reason = f"used {used_s / waited_s:.0%} of a core while no call was running: work goes on after a call has returned"
    return Finding(code=ReasonCode.BACKGROUND_WORK, reason=reason)


def _watch(process: Watched, window_s: float, clock: Callable[[int], Callable[[], float]]) -> tuple[float, float]:
    """Let a process go on and return the processor time that it uses once waiting threads sleep, and the time that went by."""
    process.cont()
    time.sleep(SPIN_S)
    used_s, started = clock(process.pid), time.perf_counter()
    time.sleep(window_s)
    return used_s(), time.perf_counter() - started


def _exact_clock(pid: int) -> Callable[[], float]:
    return ProcessorTime(pid).seconds


def _ticks(pid: int) -> Callable[[], float]:
    before_s = cpu_seconds(pid)
    return lambda: cpu_seconds(pid) - before_s
