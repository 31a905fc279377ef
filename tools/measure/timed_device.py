"""The kinds of device as a timing sees them: what differs between measuring on a CPU and on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ridgeline.tools.machine.process_use import processor_s
from ridgeline.tools.records.vocabulary import DeviceKind

_NATIVE = Path(__file__).parent / "native"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionTime:
    """The time that collecting an output may take, and what it is measured by: see late_outputs.py.

    At most: copies * the judge's copy of as much, out and back + share_of_call * a call + request_s.
    """

    copies: float
    share_of_call: float
    request_s: float  # a stopped process goes on: 0.15 ms of processor time for honest runners
    dropped: float  # part of the blocks, the slowest, that does not count: a clock measures other programs' work too
    spent_s: Callable[[int], float]  # what a process has spent so far, by its id

    def allowed_s(self, copy_s: float, call_s: float) -> float:
        """Return the most that collecting one output may take."""
        return self.copies * copy_s + self.share_of_call * call_s + self.request_s

    def counted(self, blocks_s: Sequence[float]) -> list[float]:
        """Return the blocks that count."""
        return sorted(blocks_s)[: len(blocks_s) - int(self.dropped * len(blocks_s))]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyBlocks:
    """The empty blocks by which the cost of a request is measured: see request_cost.py."""

    samples: int  # at most
    percent: int  # percentile of the samples that is taken off
    source: Path  # of the empty library
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedDevice:
    """One kind of device, as a timing sees it."""

    collection: CollectionTime
    empty_blocks: EmptyBlocks
    has_own_clock: bool  # a runner's own clock is the device's, and so a witness of the parent's
    changes_within_blocks: bool  # the judge can write contents while a candidate works: see unsettled.py
    has_graphs: bool  # a kernel's calls can be recorded and replayed without their launches


TIMED_DEVICES: dict[DeviceKind, TimedDevice] = {
    DeviceKind.CPU: TimedDevice(
        collection=CollectionTime(copies=1.25, share_of_call=0.1, request_s=2e-4, dropped=0.0, spent_s=processor_s),
        empty_blocks=EmptyBlocks(
            samples=40,
            percent=50,
            source=_NATIVE / "nothing.cpp",
            flags=("-std=c++17", "-O2", "-shared", "-fPIC"),
        ),
        has_own_clock=False,
        changes_within_blocks=True,
        has_graphs=False,
    ),
    DeviceKind.CUDA: TimedDevice(
        collection=CollectionTime(
            copies=2.0, share_of_call=0.25, request_s=5e-4, dropped=1 / 8, spent_s=lambda _: time.perf_counter()
        ),
        # Samples have two values, by whether the change of process falls into the request (0.1 and 0.36 ms on an H200):
        # below the upper one, half of the blocks would look slower than they are. The difference is what a clock that
        # lies can gain in a block.
        empty_blocks=EmptyBlocks(
            samples=20,
            percent=75,
            source=_NATIVE / "nothing.cu",
            flags=("-std=c++17", "-O2", "-shared", "-Xcompiler=-fPIC"),
        ),
        has_own_clock=True,
        changes_within_blocks=False,
        has_graphs=True,
    ),
}
