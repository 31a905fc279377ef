"""The parts of a runner's plan that its kind of device decides: native host, the GPU's files, variables, memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ridgeline.tools.machine.cuda_paths import linking_folder, named_folder
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.gpus import device_nodes, driver_library
from ridgeline.tools.machine.python_env import compute_environment
from ridgeline.tools.records.problem import DescribedTarget, Device
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.runner.native_host import cuda_host, native_host
from ridgeline.tools.runner.start import RunnerPlan
from ridgeline.tools.sandbox.sandbox import Confined, Limits

_LONGEST_RUN_S = 3600.0  # a runner lives through one verification or measurement; each call has its own limit
_LEAST_MEMORY = 1 << 30
_MOST_WORKSPACE = 4 << 30
_CUDA_HOST_MEMORY = 8 << 30  # of the process, not of the GPU: the driver's own
_SPARE_THREADS = 64
_SCRATCH_FILE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltCandidate:
    """A candidate's library, and what its runner needs beside the library."""

    problem: DescribedTarget
    library: Path
    cache_dir: Path
    candidate: Candidate | None = None  # needed by interface module, whose build is not the file itself
    sanitized: bool = False
    kernels: Path | None = None  # what Triton compiled ahead


class DevicePlans(Protocol):
    """The part of plans that one kind of device decides."""

    uses_gpu: bool
    driver_bytes: int  # memory that the device's driver takes of a process, beside the candidate's

    def native(self, built: BuiltCandidate) -> RunnerPlan:
        """Return the plan of a native host.

        Raises:
            DeviceError: the host cannot be built.
        """
        ...

    def nodes(self, device: Device) -> tuple[str, ...]:
        """Return the device files that a process on it opens."""
        ...

    def driver_folders(self) -> tuple[Path, ...]:
        """Return the folders of the driver that a sandbox does not show by itself."""
        ...

    def variables(self) -> dict[str, str]:
        """Return the variables by which a confined Python finds the driver."""
        ...


class CpuPlans:
    """Runners on the CPU."""

    uses_gpu = False
    driver_bytes = 0

    def native(self, built: BuiltCandidate) -> RunnerPlan:
        problem = built.problem
        host = native_host(built.cache_dir, sanitized=built.sanitized)
        workspace = max(min(problem.device.memory_bytes // 8, _MOST_WORKSPACE), _LEAST_MEMORY)
        environment = dict(compute_environment(problem.device))
        if built.sanitized:
            environment |= {
                "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:detect_odr_violation=0",
                "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=0",
            }
        confined = Confined(
            command=(str(host),),
            readable=(host, built.library.parent),
            env=environment,
            limits=replace(runner_limits(workspace + _LEAST_MEMORY), cap_address_space=not built.sanitized),
            cpus=measurement_cores(),
        )
        return RunnerPlan(
            confined=confined,
            library=built.library,
            workspace_bytes=workspace,
            call_timeout_s=problem.call_timeout_s,
            load_timeout_s=problem.call_timeout_s,
        )

    def nodes(self, device: Device) -> tuple[str, ...]:
        return ()

    def driver_folders(self) -> tuple[Path, ...]:
        return ()

    def variables(self) -> dict[str, str]:
        return {}


class CudaPlans:
    """Runners on a GPU."""

    uses_gpu = True
    driver_bytes = _CUDA_HOST_MEMORY

    def native(self, built: BuiltCandidate) -> RunnerPlan:
        problem = built.problem
        host = cuda_host(built.cache_dir)
        driver = driver_library().parent
        confined = Confined(
            command=(str(host),),
            readable=(host, built.library.parent, *(() if driver.is_relative_to("/usr") else (driver,))),
            env=compute_environment(problem.device) | {"LD_LIBRARY_PATH": str(driver)},
            devices=self.nodes(problem.device),
            limits=runner_limits(self.driver_bytes),
            cpus=measurement_cores(),
        )
        return RunnerPlan(
            confined=confined,
            library=built.library,
            workspace_bytes=problem.device.memory_bytes // 8,
            call_timeout_s=problem.call_timeout_s,
            load_timeout_s=problem.call_timeout_s,
            uses_gpu=True,
        )

    def nodes(self, device: Device) -> tuple[str, ...]:
        return device_nodes(device)

    def driver_folders(self) -> tuple[Path, ...]:
        folders = (driver_library().parent, linking_folder(), named_folder())
        return tuple(dict.fromkeys(f for f in folders if f is not None and not f.is_relative_to("/usr")))

    def variables(self) -> dict[str, str]:
        # Triton would start ldconfig to find the driver, and a runner may start no process.
        given = {"TRITON_LIBCUDA_PATH": str(linking_folder())}
        told = named_folder() or next(iter(self.driver_folders()), None)
        # Without the variable the loader finds the driver by itself, and torch's own libraries before the system's.
        return given if told is None else given | {"LD_LIBRARY_PATH": str(told)}


DEVICE_PLANS: dict[DeviceKind, DevicePlans] = {DeviceKind.CPU: CpuPlans(), DeviceKind.CUDA: CudaPlans()}


def runner_limits(memory_bytes: int) -> Limits:
    """Return the limits of a runner that may use this much memory."""
    cores = len(measurement_cores())
    return Limits(
        wall_s=_LONGEST_RUN_S,
        cpu_s=int(_LONGEST_RUN_S) * cores,
        memory_bytes=memory_bytes,
        file_bytes=_SCRATCH_FILE_BYTES,
        disk_bytes=_SCRATCH_FILE_BYTES,
        processes=2 * cores + _SPARE_THREADS,
    )
