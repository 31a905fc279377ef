"""The device that an evaluator measures on: what a CPU and a GPU differ in, one class for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ridgeline.tools.build.toolchain import toolchain_for
from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.gpu_state import GpuMonitor, GpuState
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind


class MeasuredDevice(Protocol):
    """A device of this machine, held by one evaluator."""

    holds_two_judges: bool  # whether two judges of one large problem fit into its memory

    def expect_ready(self) -> None:
        """Check the device before any process of Ridgeline's is on it.

        Raises:
            DeviceError: there is no fitting compiler, the driver is too old, or other processes use the device.
        """
        ...

    def observe(self) -> GpuState:
        """Return a GPU's state now; unknown on a CPU."""
        ...

    def close(self) -> None:
        """Stop looking at the device."""
        ...


class MeasuredCpu:
    """The processor: the engine's lock keeps it free, and no other process's context is in the way."""

    holds_two_judges = True

    def __init__(self, _device: Device) -> None:
        """Watch nothing."""

    def expect_ready(self) -> None:
        """Check nothing: a missing compiler fails the build of the first candidate."""

    def observe(self) -> GpuState:
        return GpuState()

    def close(self) -> None:
        """Let go of nothing."""


class MeasuredGpu:
    """One GPU, watched through NVML."""

    holds_two_judges = False

    def __init__(self, device: Device) -> None:
        self._device = device
        self._monitor = GpuMonitor(device.uuid)

    def expect_ready(self) -> None:
        toolchain_for(self._device)
        busy = self._monitor.busy_with()
        if busy:
            raise DeviceError(busy)

    def observe(self) -> GpuState:
        return self._monitor.sample()

    def close(self) -> None:
        self._monitor.close()


_DEVICES: dict[DeviceKind, Callable[[Device], MeasuredDevice]] = {
    DeviceKind.CPU: MeasuredCpu,
    DeviceKind.CUDA: MeasuredGpu,
}


def measured(device: Device) -> MeasuredDevice:
    """Return the device of its kind."""
    return _DEVICES[device.kind](device)
