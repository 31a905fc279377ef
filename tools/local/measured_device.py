"""The device that an evaluator measures on: what a CPU and a GPU differ in, one class for each."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ridgeline.tools.build.toolchain import toolchain_for
from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.gpu_state import GpuMonitor, GpuState
from ridgeline.tools.records.problem import DescribedTarget, Device
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.runner.plan import runner_plan
from ridgeline.tools.sandbox.rules import Confined


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

    def alone(self, problem: DescribedTarget, build: Build, cache_dir: Path) -> Confined | None:
        """Return how a candidate is confined when it runs alone, under a profiler or with clocks of its own.

        None for a Python runner, which has no mode without a judge.
        """
        ...

    def close(self) -> None:
        """Stop looking at the device."""
        ...


class MeasuredCpu:
    """The processor: the engine's lock keeps it free, and no other process's context is in the way."""

    holds_two_judges = True

    def expect_ready(self) -> None:
        """Check nothing: a missing compiler fails the build of the first candidate."""

    def observe(self) -> GpuState:
        return GpuState()

    def alone(self, problem: DescribedTarget, build: Build, cache_dir: Path) -> Confined | None:
        return _native_host(problem, build, cache_dir)

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

    def alone(self, problem: DescribedTarget, build: Build, cache_dir: Path) -> Confined | None:
        return _native_host(problem, build, cache_dir)

    def close(self) -> None:
        self._monitor.close()


def _native_host(problem: DescribedTarget, build: Build, cache_dir: Path) -> Confined | None:
    if problem.interface.runs_in_python or not build.library_path:
        return None
    return runner_plan(problem, build, cache_dir).confined


def measured(device: Device) -> MeasuredDevice:
    """Return the device of its kind."""
    return MeasuredGpu(device) if device.kind is DeviceKind.CUDA else MeasuredCpu()
