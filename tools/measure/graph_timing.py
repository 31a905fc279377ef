"""What a launch-bound kernel takes in a CUDA graph: its work without the launches, as an addition to the score."""

from __future__ import annotations

from statistics import median
from typing import Protocol

from ridgeline.tools.measure.sides import Arena
from ridgeline.tools.runner.wire import LoopTime

CALLS = 64
REPLAYS = 10


class Capturing(Protocol):
    """A runner that can record calls and replay them."""

    def capture(self, first_set: int, calls: int) -> bool:
        """Record rotating calls; False where they cannot be recorded.

        A call that does what a capture forbids (it synchronises, allocates, or launches to another stream) gets an error
        of CUDA's, which ends the host: the runner is of no use after it.
        """
        ...

    def replay(self) -> LoopTime:
        """Run what was captured."""
        ...


def time_graph(runner: Capturing, arena: Arena) -> float | None:
    """Return the milliseconds of a call in a replayed graph, or None where calls cannot be captured or go wrong there.

    Contents are renewed before every replay, so a graph of stale data gives a wrong output. The time is the runner's own
    clock: it informs, and is never a score.

    Raises whatever the runner raises when it dies; a capture error inside a call ends the host too, as a CUDA error.
    """
    calls = min(CALLS, arena.n_sets)
    if not runner.capture(0, calls):
        return None
    times = []
    for _ in range(REPLAYS):
        arena.renew()
        times.append(runner.replay().own_s / calls)
        if not arena.check(calls - 1).passed:
            return None
    return 1e3 * median(times)
