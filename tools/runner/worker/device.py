"""The device of a Python runner, a CPU or a GPU: the judge's memory, clocks, waiting, faults."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from ridgeline.tools.machine.cuda_driver import ILLEGAL_ADDRESS, OUT_OF_MEMORY, DeviceBytes, Driver, DriverError
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.runner.wire import SOCKET, RunnerFailureCode

_GUARD = 64 << 20  # address space without memory on both sides of a GPU's region: an overrun faults
_OUTSIDE = ": it read or wrote outside its tensors, or wrote an input (inputs are read-only)"


class RunFailed(Exception):
    """A fault that this process saw: a code of the protocol and a sentence."""

    def __init__(self, code: RunnerFailureCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class MappedRegion:
    """Memory of the judge's, mapped here."""

    def __init__(self, memory: mmap.mmap | torch.Tensor, size_bytes: int, *, read_only: bool) -> None:
        self._memory = memory
        self.size_bytes = size_bytes
        self.read_only = read_only
        self.address = self.flat(torch.uint8, 1, 0).data_ptr()

    def flat(self, dtype: torch.dtype, count: int, offset: int) -> torch.Tensor:
        """Return `count` elements from a byte on."""
        if isinstance(self._memory, torch.Tensor):
            return self._memory[offset : offset + count * dtype.itemsize].view(dtype)
        return torch.frombuffer(self._memory, dtype=dtype, count=count, offset=offset)


class RunnerDevice(Protocol):
    """The device that the candidate runs on."""

    name: str
    is_read_from_outside: bool  # outputs lie where the parent can read them once this process is stopped

    def map(self, descriptor: int, size_bytes: int, *, read_only: bool) -> MappedRegion:
        """Return the judge's memory that a descriptor opens, and close the descriptor."""
        ...

    def watch(self, library: str, regions: Sequence[MappedRegion]) -> None:
        """Let a fault tell its address on the wire."""
        ...

    def start(self) -> None:
        """Start the clock."""
        ...

    def stop(self) -> int:
        """Wait until all work is done and return the nanoseconds since `start`.

        Raises:
            RunFailed: a kernel ended in an error.
        """
        ...


class CpuDevice:
    """The CPU: memfds, faults told by a signal handler."""

    name = "cpu"
    is_read_from_outside = True

    def __init__(self) -> None:
        self._clock = time.perf_counter_ns  # bound before the candidate could patch it
        self._began = 0

    def map(self, descriptor: int, size_bytes: int, *, read_only: bool) -> MappedRegion:
        """Return the judge's memory that a descriptor opens, and close the descriptor."""
        protection = mmap.PROT_READ if read_only else mmap.PROT_READ | mmap.PROT_WRITE
        mapped = mmap.mmap(descriptor, size_bytes, flags=mmap.MAP_SHARED, prot=protection)
        os.close(descriptor)
        return MappedRegion(mapped, size_bytes, read_only=read_only)

    def watch(self, library: str, regions: Sequence[MappedRegion]) -> None:
        """Let a fault tell its address on the wire."""
        watcher = ctypes.CDLL(library)
        for region in regions:
            watcher.watch_region(
                ctypes.c_size_t(region.address), ctypes.c_size_t(region.size_bytes), int(region.read_only)
            )
        watcher.watch_faults(SOCKET)

    def start(self) -> None:
        """Start the clock."""
        self._began = self._clock()

    def stop(self) -> int:
        """Return the nanoseconds since `start`."""
        return self._clock() - self._began


class CudaDevice:
    """One GPU: exported device memory, events on torch's current stream, every stream drained before a clock stops."""

    name = "cuda"
    is_read_from_outside = False

    def __init__(self) -> None:
        """Make this process's context.

        Raises:
            RunFailed: the GPU cannot be had.
        """
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # the defaults differ
        try:
            torch.zeros(1, device="cuda")
            torch.cuda.synchronize()
            self._driver = Driver(torch.cuda.current_device())
        except (RuntimeError, OSError) as error:
            raise RunFailed(RunnerFailureCode.DEVICE, f"opening the GPU failed: {error}") from error
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        self._begin, self._end = first.record, last.record
        self._elapsed_ms: Callable[[], float] = functools.partial(first.elapsed_time, last)

    def map(self, descriptor: int, size_bytes: int, *, read_only: bool) -> MappedRegion:
        """Return the judge's memory that a descriptor opens, and close the descriptor.

        Raises:
            RunFailed: the driver refuses.
        """
        try:
            handle = self._driver.import_descriptor(descriptor)
            address = self._driver.map(handle, size_bytes, read_only=read_only, guard_bytes=_GUARD)
            self._driver.release(handle)
        except DriverError as error:
            raise RunFailed(
                RunnerFailureCode.DEVICE, f"mapping the judge's memory failed: {self._driver.name_of(error.code)}"
            ) from error
        os.close(descriptor)
        memory = torch.as_tensor(DeviceBytes(address, size_bytes), device="cuda")
        return MappedRegion(memory, size_bytes, read_only=read_only)

    def watch(self, library: str, regions: Sequence[MappedRegion]) -> None:
        """Do nothing: the driver tells of an illegal access when it is asked for the work's end."""

    def start(self) -> None:
        """Start the clock."""
        self._begin()

    def stop(self) -> int:
        """Wait until all work on every stream is done and return the nanoseconds since `start`.

        Raises:
            RunFailed: a kernel ended in an error.
        """
        has_ended = False
        with contextlib.suppress(RuntimeError):  # the driver is asked for the same error below
            self._end()
            has_ended = True
        code = self._driver.drain()
        if code == OUT_OF_MEMORY:
            raise RunFailed(RunnerFailureCode.OUT_OF_MEMORY, "the GPU's memory is used up")
        if code != 0:
            hint = _OUTSIDE if code == ILLEGAL_ADDRESS else ""
            raise RunFailed(RunnerFailureCode.CUDA_ERROR, f"a kernel ended in {self._driver.name_of(code)}{hint}")
        if not has_ended:
            raise RunFailed(RunnerFailureCode.CUDA_ERROR, "the end of the work could not be recorded on its stream")
        return int(self._elapsed_ms() * 1e6)


DEVICES: dict[DeviceKind, type[CpuDevice | CudaDevice]] = {DeviceKind.CPU: CpuDevice, DeviceKind.CUDA: CudaDevice}
