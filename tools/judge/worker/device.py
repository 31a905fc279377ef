"""A CPU and a GPU as the judge uses them: memory, modes of a reference, waiting, caches, clocks."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence

import torch

from ridgeline.tools.errors import DeviceError, EngineError
from ridgeline.tools.judge.worker.regions import ArenaRegion, DeviceRegion, FileRegion
from ridgeline.tools.records.reference_mode import MODES_ON, ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import option

_EVICTING_BYTES = 256 << 20
_CPU_KEPT_SHARE = 8
_GPU_KEPT_SHARE = 3
"""Trials are kept within memory / this."""
_GPU_SPARE_SETS = 6
"""Sets for which the trials kept on a GPU leave room beside all that is known: for the reference in float64, and a runner's own
outputs."""
_WITHOUT_GRAPHS = {"max-autotune": "max-autotune-no-cudagraphs"}
_CUDA_SUCCESS, _CUDA_NOT_SUPPORTED = 0, 801  # a GPU before Ampere sets no lines aside


def use_tf32(*, on: bool) -> None:
    """Let fp32 matrix products and convolutions run in tf32, or not; PyTorch's defaults differ between the two."""
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


class JudgeDevice:
    """The device as the judge uses it. The defaults are a CPU's, where a call returns when its work is done."""

    kind: DeviceKind
    seals_inputs: bool  # the kernel refuses a runner's writes to inputs, so nobody need look for them
    modes: frozenset[ReferenceMode]  # the ways of running a reference that PyTorch has there
    frees_for_runner: bool  # what the judge can make again is freed before a runner needs the memory
    works_while_stopped: bool  # what a stopped runner asked of it goes on, and slows others down

    def region(self, name: str, size_bytes: int, *, writable_by_runner: bool) -> ArenaRegion:
        """Return new memory that this process writes and a runner maps."""
        return FileRegion(name, size_bytes, writable_by_runner=writable_by_runner)

    def kept_bytes(self, memory_bytes: int, *, taken_bytes: int, set_bytes: int) -> int:
        """Return how much of the memory may hold trials; all sets take `taken_bytes` of it, one of them `set_bytes`."""
        return memory_bytes // _CPU_KEPT_SHARE

    def aside_bytes(self, memory_bytes: int, *, taken_bytes: int, set_bytes: int) -> int:
        """Return how much of the memory may hold trials while another one is drawn anew beside a runner."""
        return memory_bytes

    def compile_option(self, mode: ReferenceMode) -> str:
        """Return the `mode` that torch.compile is given for one of `modes`."""
        return mode.compile_mode

    def expect_torch(self) -> None:
        """Refuse a PyTorch that cannot use the device.

        Raises:
            DeviceError: PyTorch is built without CUDA, or for a newer CUDA than the driver's.
        """

    def settle(self) -> None:
        """Wait until everything asked of the device is done."""

    def give_back(self, *, beyond_bytes: int = 0) -> None:
        """Return the device memory that PyTorch keeps for later, when it is more than `beyond_bytes`."""

    def reset_persisting_lines(self) -> None:
        """Make every line that a process set aside in a GPU's L2 an ordinary one again.

        A candidate that keeps its weights there would find them in its next block, and eager PyTorch a smaller cache.
        """

    def evict_cache(self, cache_bytes: int) -> None:
        """Leave nothing in a GPU's L2 but zeros that nobody reads; on a CPU that would take 0.1 s and more."""

    def time_nothing(self) -> float:
        """Return the seconds that a trivial piece of work takes on a GPU; 0.0 on a CPU.

        A GPU gives its time in slices: with another process at work this waits for one.
        """
        return 0.0

    def stopwatch(self) -> Stopwatch:
        """Return a clock for this process's work on the device."""
        return Stopwatch()

    def copy_out_and_back(self, outputs: Sequence[torch.Tensor]) -> None:
        """Copy these tensors and copy the copies into them; they keep their contents."""
        for output, copy in zip(outputs, [output.clone() for output in outputs], strict=True):
            output.copy_(copy)
        self.settle()


class Cpu(JudgeDevice):
    """The CPU of this machine."""

    kind = DeviceKind.CPU
    seals_inputs = True
    modes = MODES_ON[kind]
    frees_for_runner = False
    works_while_stopped = False


class Cuda(JudgeDevice):
    """The one GPU that this process sees. The driver may show a GPU that PyTorch cannot use."""

    kind = DeviceKind.CUDA
    seals_inputs = False
    modes = MODES_ON[kind]
    frees_for_runner = True
    works_while_stopped = True

    def region(self, name: str, size_bytes: int, *, writable_by_runner: bool) -> ArenaRegion:
        return DeviceRegion(size_bytes, writable_by_runner=writable_by_runner)

    def kept_bytes(self, memory_bytes: int, *, taken_bytes: int, set_bytes: int) -> int:
        room = memory_bytes - taken_bytes - _GPU_SPARE_SETS * set_bytes
        return max(0, min(memory_bytes // _GPU_KEPT_SHARE, room))

    def aside_bytes(self, memory_bytes: int, *, taken_bytes: int, set_bytes: int) -> int:
        return max(0, memory_bytes - taken_bytes - 2 * _GPU_SPARE_SETS * set_bytes)

    def compile_option(self, mode: ReferenceMode) -> str:
        """Return the mode without CUDA graphs.

        A graph first copies its inputs to fixed places, a cost that rotating sets would add to it.
        """
        return _WITHOUT_GRAPHS.get(mode.compile_mode, mode.compile_mode)

    def expect_torch(self) -> None:
        if torch.version.cuda is None:
            raise DeviceError(
                f"device cuda: this PyTorch ({torch.__version__}) is built without CUDA: install one that is built with "
                f"it, or use {option('device', 'cpu')}"
            )
        try:
            torch.cuda.init()  # type: ignore[no-untyped-call]
        except RuntimeError as error:  # its own words: too old a driver, no GPU shown
            raise DeviceError(
                f"device cuda: this PyTorch ({torch.__version__}) does not start on it: "
                f"{' '.join(str(error).split())[:200]}; install one for the driver's CUDA, or use "
                f"{option('device', 'cpu')}"
            ) from error

    def settle(self) -> None:
        torch.cuda.synchronize()

    def give_back(self, *, beyond_bytes: int = 0) -> None:
        if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > beyond_bytes:
            torch.cuda.empty_cache()

    def reset_persisting_lines(self) -> None:
        torch.cuda.synchronize()  # makes torch's context current in this thread
        code = ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
        if code not in (_CUDA_SUCCESS, _CUDA_NOT_SUPPORTED):
            raise EngineError(f"resetting the GPU's persisting L2 lines failed with CUDA error {code}")

    def evict_cache(self, cache_bytes: int) -> None:
        torch.empty(max(_EVICTING_BYTES, 4 * cache_bytes), dtype=torch.uint8, device="cuda").zero_()

    def time_nothing(self) -> float:
        start = time.perf_counter()
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
        return time.perf_counter() - start

    def stopwatch(self) -> Stopwatch:
        return CudaStopwatch()


class Stopwatch:
    """Times work of this process from `start` to `seconds`, by this process's clock."""

    def __init__(self) -> None:
        self._began = 0.0

    def start(self) -> None:
        """Begin."""
        self._began = time.perf_counter()

    def seconds(self) -> float:
        """Wait for all work begun since and return how long it took."""
        return time.perf_counter() - self._began


class CudaStopwatch(Stopwatch):
    """Times work of this process by the GPU's own clock."""

    def __init__(self) -> None:
        super().__init__()
        self._first, self._last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]

    def start(self) -> None:
        self._first.record()

    def seconds(self) -> float:
        self._last.record()
        torch.cuda.synchronize()
        return float(self._first.elapsed_time(self._last)) / 1e3


_DEVICES: dict[DeviceKind, type[JudgeDevice]] = {each.kind: each for each in (Cpu, Cuda)}


def device_of(kind: DeviceKind) -> JudgeDevice:
    """Return the device of a kind."""
    return _DEVICES[kind]()
