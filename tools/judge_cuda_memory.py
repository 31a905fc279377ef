"""Device memory that the judge owns and a runner maps: exported handles, nothing goes through the host (in the judge).

A region is one allocation of `cuMemCreate`, exported as a POSIX file descriptor. The runner imports it with the access
it is given: a kernel that writes an input faults. The calls are those of the CUDA driver API, "Virtual Memory
Management"; torch sees the memory through `__cuda_array_interface__`.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import torch

from ridgeline.tools.errors import DeviceError

_PINNED = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
_POSIX_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_ON_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ_WRITE = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_OUT_OF_MEMORY = 2


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _AllocFlags(ctypes.Structure):
    _fields_ = (
        ("compression_type", ctypes.c_ubyte),
        ("gpu_direct_rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    )


class _Allocation(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", _AllocFlags),
    )


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class DeviceBytes:
    """Device memory of this process, described so that torch can view it without a copy."""

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


class DeviceAllocation:
    """One allocation on the judge's GPU, mapped here for reading and writing, with a descriptor for a runner."""

    def __init__(self, size_bytes: int) -> None:
        """Allocate at least `size_bytes` on the current device; `size_bytes` of the object says how much it became.

        Raises:
            DeviceError: the GPU has not that much memory free, or the driver refuses.
        """
        torch.cuda.init()  # type: ignore[no-untyped-call]
        device = torch.cuda.current_device()
        torch.cuda.synchronize(device)  # makes torch's own context, the primary one, current in this thread
        self._driver = ctypes.CDLL("libcuda.so.1")
        properties = _Allocation(type=_PINNED, handle_types=_POSIX_DESCRIPTOR, location=_Location(_ON_DEVICE, device))
        granularity = ctypes.c_size_t()
        self._check(
            self._driver.cuMemGetAllocationGranularity(ctypes.byref(granularity), ctypes.byref(properties), 0), 0
        )
        self.size_bytes = max(math.ceil(size_bytes / granularity.value), 1) * granularity.value
        size, handle = ctypes.c_size_t(self.size_bytes), ctypes.c_ulonglong()
        code = self._driver.cuMemCreate(ctypes.byref(handle), size, ctypes.byref(properties), ctypes.c_ulonglong(0))
        self._check(code, self.size_bytes)
        self.address = self._map(handle, size, device)
        descriptor = ctypes.c_int(-1)
        self._check(
            self._driver.cuMemExportToShareableHandle(
                ctypes.byref(descriptor), handle, _POSIX_DESCRIPTOR, ctypes.c_ulonglong(0)
            ),
            self.size_bytes,
        )
        self.fd = descriptor.value

    def _map(self, handle: ctypes.c_ulonglong, size: ctypes.c_size_t, device: int) -> int:
        address, nothing = ctypes.c_ulonglong(), ctypes.c_ulonglong(0)
        zero = ctypes.c_size_t(0)
        self._check(
            self._driver.cuMemAddressReserve(ctypes.byref(address), size, zero, nothing, nothing), self.size_bytes
        )
        self._check(self._driver.cuMemMap(address, size, zero, handle, nothing), self.size_bytes)
        access = _Access(_Location(_ON_DEVICE, device), _READ_WRITE)
        self._check(
            self._driver.cuMemSetAccess(address, size, ctypes.byref(access), ctypes.c_size_t(1)), self.size_bytes
        )
        return address.value

    def tensor(self) -> torch.Tensor:
        """Return the whole allocation as bytes."""
        return torch.as_tensor(DeviceBytes(self.address, self.size_bytes), device="cuda")

    @staticmethod
    def _check(code: int, size_bytes: int) -> None:
        if code == _OUT_OF_MEMORY:
            raise DeviceError(
                f"the problem does not fit: the GPU has no {size_bytes / 1e9:.3g} GB free for its inputs and outputs; "
                "choose smaller sizes (targets.cuda.sizes)"
            )
        if code != 0:
            raise DeviceError(f"allocating {size_bytes / 1e9:.3g} GB of device memory failed with CUDA error {code}")
