"""What differs between a CPU and a GPU in the judge besides its memory: precision, waiting, clocks (runs in the judge)."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence

import torch

from ridgeline.tools.errors import DeviceError, EngineError
from ridgeline.tools.records.vocabulary import DeviceKind

_EVICTING_BYTES = 256 << 20
_CUDA_SUCCESS, _CUDA_NOT_SUPPORTED = 0, 801  # a GPU before Ampere sets no lines aside


def use_tf32(*, on: bool) -> None:
    """Let fp32 matrix products and convolutions run in tf32, or not; PyTorch's defaults differ between the two."""
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def expect_torch_on(kind: DeviceKind) -> None:
    """Refuse a PyTorch that cannot use the GPU, which the driver itself may well show.

    Raises:
        DeviceError: it is built without CUDA, or for a newer CUDA than the driver's.
    """
    if kind is DeviceKind.CPU:
        return
    if torch.version.cuda is None:
        raise DeviceError(
            f"device cuda: this PyTorch ({torch.__version__}) is built without CUDA: install one that is built with it, "
            "or use --device cpu"
        )
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except RuntimeError as error:  # its own words: too old a driver, no GPU shown
        raise DeviceError(
            f"device cuda: this PyTorch ({torch.__version__}) does not start on it: {' '.join(str(error).split())[:200]}; "
            "install one for the driver's CUDA, or use --device cpu"
        ) from error


def settle(kind: DeviceKind) -> None:
    """Wait until everything asked of the device is done."""
    if kind is DeviceKind.CUDA:
        torch.cuda.synchronize()


def give_back(kind: DeviceKind, *, beyond_bytes: int = 0) -> None:
    """Return the GPU's memory that PyTorch keeps for later, when it is more than this: others allocate on the device too."""
    if kind is DeviceKind.CUDA and torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > beyond_bytes:
        torch.cuda.empty_cache()


def reset_persisting_lines(kind: DeviceKind) -> None:
    """Make every line that a process set aside in a GPU's L2 an ordinary one again; nothing on a CPU.

    A candidate that keeps its weights there would find them in its next block, and eager PyTorch a smaller cache.
    """
    if kind is DeviceKind.CPU:
        return
    torch.cuda.synchronize()  # makes torch's context current in this thread
    code = ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
    if code not in (_CUDA_SUCCESS, _CUDA_NOT_SUPPORTED):
        raise EngineError(f"resetting the GPU's persisting L2 lines failed with CUDA error {code}")


def evict_cache(kind: DeviceKind, cache_bytes: int) -> None:
    """Leave nothing in a GPU's L2 but zeros that nobody reads; nothing on a CPU, where that would take 0.1 s and more."""
    if kind is DeviceKind.CUDA:
        torch.empty(max(_EVICTING_BYTES, 4 * cache_bytes), dtype=torch.uint8, device="cuda").zero_()


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


def copy_out_and_back(kind: DeviceKind, outputs: Sequence[torch.Tensor]) -> None:
    """Copy these tensors and copy the copies into them; they keep their contents."""
    for output, copy in zip(outputs, [output.clone() for output in outputs], strict=True):
        output.copy_(copy)
    settle(kind)


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
