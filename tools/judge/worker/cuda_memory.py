"""Device memory that the judge owns and a runner maps: nothing goes through the host.

A region is one allocation, exported as a POSIX file descriptor. The runner maps inputs for reading alone: a kernel that
writes an input faults. torch sees the memory through `__cuda_array_interface__`.
"""

from __future__ import annotations

import torch

from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.cuda_driver import OUT_OF_MEMORY, DeviceBytes, Driver, DriverError


class DeviceAllocation:
    """One allocation on the judge's GPU, mapped here for reading and writing, with a descriptor for a runner."""

    def __init__(self, size_bytes: int) -> None:
        """Allocate at least `size_bytes` on the current device; the attribute `size_bytes` is what was allocated.

        Raises:
            DeviceError: the GPU has not that much memory free, or the driver refuses.
        """
        torch.cuda.init()  # type: ignore[no-untyped-call]
        device = torch.cuda.current_device()
        torch.cuda.synchronize(device)  # makes torch's own context, the primary one, current in this thread
        driver = Driver(device)
        self.size_bytes = size_bytes
        try:
            self.size_bytes = driver.whole_size(size_bytes)
            handle = driver.create(self.size_bytes)
            self.address = driver.map(handle, self.size_bytes)
            self.fd = driver.export(handle)
        except DriverError as error:
            raise _explained(error, self.size_bytes) from error

    def tensor(self) -> torch.Tensor:
        """Return the whole allocation as bytes."""
        return torch.as_tensor(DeviceBytes(self.address, self.size_bytes), device="cuda")


def _explained(error: DriverError, size_bytes: int) -> DeviceError:
    if error.code == OUT_OF_MEMORY:
        return DeviceError(
            f"the problem does not fit: the GPU has no {size_bytes / 1e9:.3g} GB free for its inputs and outputs; "
            "choose smaller sizes (targets.cuda.sizes)"
        )
    return DeviceError(f"allocating {size_bytes / 1e9:.3g} GB of device memory failed with {error}")
