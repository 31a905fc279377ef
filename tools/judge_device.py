"""What differs between a CPU and a GPU in the judge besides its memory: precision, waiting, clocks (runs in the judge)."""

from __future__ import annotations

import time

import torch

from ridgeline.tools.records import DeviceKind


def use_tf32(*, on: bool) -> None:
    """Let fp32 matrix products and convolutions run in tf32, or not; PyTorch's defaults differ between the two."""
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def settle(kind: DeviceKind) -> None:
    """Wait until everything asked of the device is done."""
    if kind is DeviceKind.CUDA:
        torch.cuda.synchronize()


def give_back(kind: DeviceKind, *, beyond_bytes: int = 0) -> None:
    """Return the GPU's memory that PyTorch keeps for later, when it is more than this: others allocate on the device too."""
    if kind is DeviceKind.CUDA and torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > beyond_bytes:
        torch.cuda.empty_cache()


def time_nothing(kind: DeviceKind) -> float:
    """Return the seconds that a trivial piece of work takes on the device; 0.0 on a CPU.

    A GPU gives its time in slices: with another process at work this waits for one.
    """
    if kind is DeviceKind.CPU:
        return 0.0
    start = time.perf_counter()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    return time.perf_counter() - start


class Stopwatch:
    """Times work of this process on a device: by the device's own clock on a GPU, from `start` to `seconds`."""

    def __init__(self, kind: DeviceKind) -> None:
        self._kind = kind
        self._began = 0.0
        self._events: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
        if kind is DeviceKind.CUDA:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            self._events = (first, last)

    def start(self) -> None:
        """Begin."""
        if self._events is not None:
            self._events[0].record()
        self._began = time.perf_counter()

    def seconds(self) -> float:
        """Wait for all work begun since and return how long it took."""
        if self._events is None:
            return time.perf_counter() - self._began
        self._events[1].record()
        torch.cuda.synchronize()
        return float(self._events[0].elapsed_time(self._events[1])) / 1e3
