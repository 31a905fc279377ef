"""The CUDA driver's calls for sharing device memory: judge and runner each map the same allocation.

"Virtual Memory Management" of the driver API. An allocation of `cuMemCreate` is exported as a POSIX file descriptor; a
process that imports it maps it with the access that it asks for. No torch here. The calls go through ctypes, because
cuda-bindings would bring 8 MB of compiled code, made for one CUDA major version, into every runner for eleven calls
whose binary interface is fixed.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

OUT_OF_MEMORY = 2
ILLEGAL_ADDRESS = 700
_PINNED = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
_POSIX_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_ON_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ_ONLY, _READ_WRITE = 1, 3  # CU_MEM_ACCESS_FLAGS_PROT_READ, …_READWRITE


class DriverError(Exception):
    """A call of the driver failed with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error {code}")
        self.code = code


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


class Driver:
    """The driver's calls on one device, whose context is current in this thread."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._cuda = ctypes.CDLL("libcuda.so.1")

    def whole_size(self, size_bytes: int) -> int:
        """Return how large an allocation of at least this size becomes.

        Raises:
            DriverError: the driver refuses.
        """
        granularity, properties = ctypes.c_size_t(), self._properties()
        _check(self._cuda.cuMemGetAllocationGranularity(ctypes.byref(granularity), ctypes.byref(properties), 0))
        return max(math.ceil(size_bytes / granularity.value), 1) * granularity.value

    def create(self, size_bytes: int) -> int:
        """Return the handle of a new allocation of a whole size.

        Raises:
            DriverError: the memory is not there (OUT_OF_MEMORY), or the driver refuses.
        """
        handle, properties = ctypes.c_ulonglong(), self._properties()
        size, nothing = ctypes.c_size_t(size_bytes), ctypes.c_ulonglong(0)
        _check(self._cuda.cuMemCreate(ctypes.byref(handle), size, ctypes.byref(properties), nothing))
        return handle.value

    def export(self, handle: int) -> int:
        """Return a descriptor that opens the allocation in another process.

        Raises:
            DriverError: the driver refuses.
        """
        descriptor = ctypes.c_int(-1)
        nothing = ctypes.c_ulonglong(0)
        _check(
            self._cuda.cuMemExportToShareableHandle(
                ctypes.byref(descriptor), ctypes.c_ulonglong(handle), _POSIX_DESCRIPTOR, nothing
            )
        )
        return descriptor.value

    def import_descriptor(self, descriptor: int) -> int:
        """Return the handle of an allocation that another process exported; the descriptor may then be closed.

        Raises:
            DriverError: the descriptor is no allocation.
        """
        handle = ctypes.c_ulonglong()
        _check(
            self._cuda.cuMemImportFromShareableHandle(
                ctypes.byref(handle), ctypes.c_void_p(descriptor), _POSIX_DESCRIPTOR
            )
        )
        return handle.value

    def map(self, handle: int, size_bytes: int, *, read_only: bool = False, guard_bytes: int = 0) -> int:
        """Return the address at which an allocation is mapped, with address space without memory on both sides.

        Raises:
            DriverError: the driver refuses.
        """
        space, nothing, zero = ctypes.c_ulonglong(), ctypes.c_ulonglong(0), ctypes.c_size_t(0)
        reserved = ctypes.c_size_t(size_bytes + 2 * guard_bytes)
        _check(self._cuda.cuMemAddressReserve(ctypes.byref(space), reserved, zero, nothing, nothing))
        base, size = ctypes.c_ulonglong(space.value + guard_bytes), ctypes.c_size_t(size_bytes)
        _check(self._cuda.cuMemMap(base, size, zero, ctypes.c_ulonglong(handle), nothing))
        access = _Access(_Location(_ON_DEVICE, self._device), _READ_ONLY if read_only else _READ_WRITE)
        _check(self._cuda.cuMemSetAccess(base, size, ctypes.byref(access), ctypes.c_size_t(1)))
        return base.value

    def release(self, handle: int) -> None:
        """Let go of a handle; what is mapped keeps the memory.

        Raises:
            DriverError: the driver refuses.
        """
        _check(self._cuda.cuMemRelease(ctypes.c_ulonglong(handle)))

    def drain(self) -> int:
        """Wait for all work on every stream of the context; return 0, or the error that some of it ended in."""
        return int(self._cuda.cuCtxSynchronize())

    def name_of(self, code: int) -> str:
        """Return an error's name and text."""
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._cuda.cuGetErrorName(code, ctypes.byref(name))
        self._cuda.cuGetErrorString(code, ctypes.byref(text))
        return f"{(name.value or b'an unknown CUDA error').decode()} ({(text.value or b'').decode()})"

    def _properties(self) -> _Allocation:
        return _Allocation(type=_PINNED, handle_types=_POSIX_DESCRIPTOR, location=_Location(_ON_DEVICE, self._device))


def _check(code: int) -> None:
    if code != 0:
        raise DriverError(code)
