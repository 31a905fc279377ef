"""The kinds of device as a timing sees them: what differs between measuring on a CPU and on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgeline.tools.judge.messages import Idle, Renew, Request
from ridgeline.tools.records.vocabulary import DeviceKind

_NATIVE = Path(__file__).parent / "native"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyBlocks:
    """The empty blocks by which the cost of a request is measured: see request_cost.py."""

    samples: int
    percent: int  # percentile of the samples that is taken off
    work: Request[Any]  # the judge's, right before each
    source: Path  # of the empty library
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedDevice:
    """One kind of device, as a timing sees it."""

    collects: bool  # a Python runner copies its outputs itself; otherwise the parent reads them in its memory
    empty_blocks: EmptyBlocks
    has_own_clock: bool  # a runner's own clock is the device's, and so a witness of the parent's
    has_graphs: bool  # a kernel's calls can be recorded and replayed without their launches


TIMED_DEVICES: dict[DeviceKind, TimedDevice] = {
    DeviceKind.CPU: TimedDevice(
        collects=False,
        empty_blocks=EmptyBlocks(
            samples=40,
            percent=50,
            work=Idle(),  # it takes half a second to renew all contents
            source=_NATIVE / "nothing.cpp",
            flags=("-std=c++17", "-O2", "-shared", "-fPIC"),
        ),
        has_own_clock=False,
        has_graphs=False,
    ),
    DeviceKind.CUDA: TimedDevice(
        collects=True,
        # Samples have two values, by whether the change of process falls into the request (0.1 and 0.36 ms on an H200):
        # below the upper one, half of the blocks would look slower than they are. The difference is what a clock that
        # lies can gain in a block.
        empty_blocks=EmptyBlocks(
            samples=20,
            percent=75,
            work=Renew(),
            source=_NATIVE / "nothing.cu",
            flags=("-std=c++17", "-O2", "-shared", "-Xcompiler=-fPIC"),
        ),
        has_own_clock=True,
        has_graphs=True,
    ),
}
