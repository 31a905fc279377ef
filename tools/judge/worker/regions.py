"""Regions of memory that the judge writes and a runner maps: one class for each kind of device.

On a CPU a region is an anonymous file. The judge maps inputs and parameters and then seals them against future writable
mappings. So a runner cannot write them by any route: not through its own mapping, not by reopening the descriptor. Both
can write outputs, neither can resize them. On a GPU a region is an exported allocation: see cuda_memory.py.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Protocol

import torch

from ridgeline.tools.judge.worker.cuda_memory import DeviceAllocation
from ridgeline.tools.records.dtypes import spanned_elements
from ridgeline.tools.records.problem import ArgSpec

LEAST_BYTES = 4096
"""A page: no region is smaller, and tensors begin at its multiples."""

# linux/fcntl.h; Python 3.11's fcntl has no F_SEAL_FUTURE_WRITE
_F_SEAL_FUTURE_WRITE = 0x10


class ArenaRegion(Protocol):
    """Memory that this process writes and a runner maps by descriptor."""

    fd: int
    size_bytes: int
    writable_by_runner: bool

    def tensor(self, offset: int, spec: ArgSpec) -> torch.Tensor:
        """Return a view of the memory with the argument's dtype, shape and strides."""
        ...

    def span(self, offset: int, size_bytes: int) -> torch.Tensor:
        """Return a view of so many bytes of the memory."""
        ...

    def wipe(self) -> None:
        """Overwrite every byte, those between the tensors too."""
        ...


class FileRegion:
    """One memfd, mapped for writing by this process."""

    def __init__(self, name: str, size_bytes: int, *, writable_by_runner: bool) -> None:
        self.size_bytes = max(size_bytes, LEAST_BYTES)
        self.writable_by_runner = writable_by_runner
        self.fd = os.memfd_create(f"ridgeline-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size_bytes)
        self._map = mmap.mmap(self.fd, self.size_bytes)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | (0 if writable_by_runner else _F_SEAL_FUTURE_WRITE)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals | fcntl.F_SEAL_SEAL)

    def tensor(self, offset: int, spec: ArgSpec) -> torch.Tensor:
        """Return a view of the memory with the argument's dtype, shape and strides."""
        count = storage_elements(spec)
        if count == 0:
            return torch.empty(spec.shape, dtype=torch_dtype(spec.dtype))
        flat = torch.frombuffer(self._map, dtype=torch_dtype(spec.dtype), count=count, offset=offset)
        return flat.as_strided(spec.shape, spec.strides)

    def span(self, offset: int, size_bytes: int) -> torch.Tensor:
        """Return a view of so many bytes of the memory."""
        return torch.frombuffer(self._map, dtype=torch.uint8, count=size_bytes, offset=offset)

    def wipe(self) -> None:
        """Overwrite every byte, those between the tensors too."""
        torch.frombuffer(self._map, dtype=torch.uint8).zero_()


class DeviceRegion:
    """One exported allocation on the judge's GPU.

    Whoever holds the descriptor maps the allocation and chooses the access. A runner's host maps inputs for reading
    alone and closes the descriptor, before the candidate is loaded.
    """

    def __init__(self, size_bytes: int, *, writable_by_runner: bool) -> None:
        self._allocation = DeviceAllocation(size_bytes)
        self._bytes = self._allocation.tensor()
        self.size_bytes = self._allocation.size_bytes
        self.fd = self._allocation.fd
        self.writable_by_runner = writable_by_runner

    def tensor(self, offset: int, spec: ArgSpec) -> torch.Tensor:
        """Return a view of the memory with the argument's dtype, shape and strides."""
        dtype = torch_dtype(spec.dtype)
        size = storage_elements(spec) * dtype.itemsize
        if size == 0:
            return torch.empty(spec.shape, dtype=dtype, device="cuda")
        return self._bytes[offset : offset + size].view(dtype).as_strided(spec.shape, spec.strides)

    def span(self, offset: int, size_bytes: int) -> torch.Tensor:
        """Return a view of so many bytes of the memory."""
        return self._bytes[offset : offset + size_bytes]

    def wipe(self) -> None:
        """Overwrite every byte, those between the tensors too."""
        self._bytes.zero_()


def storage_elements(spec: ArgSpec) -> int:
    """Return how many elements lie between the first and the last one of a strided tensor, both included."""
    return spanned_elements(spec.shape, spec.strides)


def torch_dtype(name: str) -> torch.dtype:
    """Return torch's dtype of a record's dtype name."""
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype
