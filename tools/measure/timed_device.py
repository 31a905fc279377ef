"""The kinds of device as a timing sees them: what differs between measuring on a CPU and on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ridgeline.tools.records.vocabulary import DeviceKind

_NATIVE = Path(__file__).parent / "native"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyBlocks:
    """The empty blocks by which the cost of a request is measured: see request_cost.py."""

    fewest_samples: int
    most_samples: int  # as many as fit into a second
    percent: int  # percentile of the samples that is taken off
    source: Path  # of the empty library
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedDevice:
    """One kind of device, as a timing sees it."""

    empty_blocks: EmptyBlocks
    has_own_clock: bool  # a runner's own clock is the device's, and so a witness of the parent's
    works_on_processors: bool  # all work is processor time of the runner's: see singles.py
    changes_within_blocks: bool  # the judge can write contents while a candidate works: see changing_blocks.py
    is_asynchronous: bool  # a call returns before its work is done, and the loop goes on meanwhile
    times_reference_apart: bool  # eager PyTorch runs in a runner of its own, as a candidate does: see sides.py
    has_graphs: bool  # a kernel's calls can be recorded and replayed without their launches
    search_block_s: (
        float  # what a block lasts where many candidates are timed; after a pause a CPU's first calls take longer
    )


TIMED_DEVICES: dict[DeviceKind, TimedDevice] = {
    DeviceKind.CPU: TimedDevice(
        empty_blocks=EmptyBlocks(
            fewest_samples=8,
            most_samples=40,
            percent=50,
            source=_NATIVE / "nothing.cpp",
            flags=("-std=c++17", "-O2", "-shared", "-fPIC"),
        ),
        has_own_clock=False,
        works_on_processors=True,
        changes_within_blocks=True,
        is_asynchronous=False,
        times_reference_apart=True,
        has_graphs=False,
        search_block_s=0.03,
    ),
    DeviceKind.CUDA: TimedDevice(
        # Samples have two values, by whether the change of process falls into the request (0.1 and 0.36 ms on an H200):
        # below the upper one, half of the blocks would look slower than they are. The difference is what a clock that
        # lies can gain in a block. With eight samples work on a side stream was once not told by its witness.
        empty_blocks=EmptyBlocks(
            fewest_samples=20,
            most_samples=20,
            percent=75,
            source=_NATIVE / "nothing.cu",
            flags=("-std=c++17", "-O2", "-shared", "-Xcompiler=-fPIC"),
        ),
        has_own_clock=True,
        works_on_processors=False,
        changes_within_blocks=False,
        is_asynchronous=True,
        times_reference_apart=False,
        has_graphs=True,
        search_block_s=0.012,
    ),
}
