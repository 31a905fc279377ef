"""The judge's memory for one problem: three regions that judge and runner both map.

On a CPU the regions are anonymous files. The judge maps inputs and parameters and then seals them against future
writable mappings. So a runner cannot write them by any route: not through its own mapping, not by reopening the
descriptor. Both can write outputs, neither can resize them. On a GPU the regions are exported allocations: see
cuda_memory.py.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Protocol

import torch

from ridgeline.tools.judge.replies import Place
from ridgeline.tools.judge.set_count import count_sets
from ridgeline.tools.judge.worker.cuda_memory import DeviceAllocation
from ridgeline.tools.judge.worker.device import JudgeDevice
from ridgeline.tools.records.dtypes import spanned_elements
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Role

_ALIGN = 4096

# linux/fcntl.h; Python 3.11's fcntl has no F_SEAL_FUTURE_WRITE
_F_SEAL_FUTURE_WRITE = 0x10


class Region(Protocol):
    """Memory that this process writes and a runner maps by descriptor."""

    fd: int
    size_bytes: int
    writable_by_runner: bool

    def tensor(self, offset: int, spec: ArgSpec) -> torch.Tensor:
        """Return a view of the memory with the argument's dtype, shape and strides."""
        ...

    def wipe(self) -> None:
        """Overwrite every byte, those between the tensors too."""
        ...


class FileRegion:
    """One memfd, mapped for writing by this process."""

    def __init__(self, name: str, size_bytes: int, *, writable_by_runner: bool) -> None:
        self.size_bytes = max(size_bytes, _ALIGN)
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

    def wipe(self) -> None:
        """Overwrite every byte, those between the tensors too."""
        self._bytes.zero_()


class ArenaMemory:
    """Every set of inputs and outputs of a problem, and its parameters, as torch tensors over shared regions."""

    INPUTS, PARAMETERS, OUTPUTS = 0, 1, 2

    def __init__(self, signature: Signature, *, device: JudgeDevice, cache_bytes: int, memory_bytes: int) -> None:
        self.device, kind = device, device.kind
        specs = [a for a in signature.args if a.kind is ArgKind.TENSOR]
        offsets: dict[int, int] = {self.INPUTS: 0, self.PARAMETERS: 0, self.OUTPUTS: 0}
        starts: list[tuple[int, int]] = []
        for spec in specs:
            region = self._region_of(spec.role)
            starts.append((region, offsets[region]))
            offsets[region] += _aligned(storage_elements(spec) * torch_dtype(spec.dtype).itemsize)
        self.set_bytes = offsets[self.INPUTS] + offsets[self.OUTPUTS]
        self.n_sets = count_sets(self.set_bytes, kind=kind, cache_bytes=cache_bytes, memory_bytes=memory_bytes)
        self.regions = (
            _region(kind, "inputs", offsets[self.INPUTS] * self.n_sets, writable_by_runner=False),
            _region(kind, "parameters", offsets[self.PARAMETERS], writable_by_runner=False),
            _region(kind, "outputs", offsets[self.OUTPUTS] * self.n_sets, writable_by_runner=True),
        )
        self.places = tuple(
            Place(spec=s, region=r, offset=o, set_stride=0 if r == self.PARAMETERS else offsets[r])
            for s, (r, o) in zip(specs, starts, strict=True)
        )
        self.parameters = {p.spec.source: self._view(p, 0) for p in self.places if p.region == self.PARAMETERS}
        self.inputs = tuple(self._views(self.INPUTS, i) for i in range(self.n_sets))
        self.outputs = tuple(self._views(self.OUTPUTS, i) for i in range(self.n_sets))

    def wipe(self) -> None:
        """Overwrite all that a runner can write: a later runner could read there what an earlier one left."""
        self.regions[self.OUTPUTS].wipe()

    @staticmethod
    def _region_of(role: Role) -> int:
        if role is Role.INPUT:
            return ArenaMemory.INPUTS
        return ArenaMemory.OUTPUTS if role is Role.OUTPUT else ArenaMemory.PARAMETERS

    def _view(self, place: Place, set_index: int) -> torch.Tensor:
        return self.regions[place.region].tensor(place.offset + set_index * place.set_stride, place.spec)

    def _views(self, region: int, set_index: int) -> tuple[torch.Tensor, ...]:
        return tuple(self._view(p, set_index) for p in self.places if p.region == region)


def _region(kind: DeviceKind, name: str, size_bytes: int, *, writable_by_runner: bool) -> Region:
    if kind is DeviceKind.CUDA:
        return DeviceRegion(size_bytes, writable_by_runner=writable_by_runner)
    return FileRegion(name, size_bytes, writable_by_runner=writable_by_runner)


def storage_elements(spec: ArgSpec) -> int:
    """Return how many elements lie between the first and the last one of a strided tensor, both included."""
    return spanned_elements(spec.shape, spec.strides)


def torch_dtype(name: str) -> torch.dtype:
    """Return torch's dtype of a record's dtype name."""
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGN) * _ALIGN
