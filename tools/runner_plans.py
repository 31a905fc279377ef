"""How the runner of a candidate is confined: its command, what it may read, what it may use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import ridgeline
from ridgeline.tools.engine import ProblemOnDevice
from ridgeline.tools.errors import EngineError
from ridgeline.tools.hardware import device_nodes, driver_library, measurement_cores
from ridgeline.tools.measuring_environment import compute_environment
from ridgeline.tools.native_host import cuda_host, native_host
from ridgeline.tools.records import Build, DeviceKind, Interface
from ridgeline.tools.runner_process import RunnerPlan
from ridgeline.tools.sandbox import Confined, Limits, python_paths

SANITIZERS = "address,undefined"
_LONGEST_RUN_S = 3600.0  # a runner lives through one verification or measurement; each call has its own limit
_LEAST_MEMORY = 1 << 30
_MOST_WORKSPACE = 4 << 30
_TORCH_MEMORY = 3 << 30  # torch's own libraries and allocator
_TORCH_LOAD_S = 90.0  # importing torch on a busy machine
_CUDA_HOST_MEMORY = 8 << 30  # of the process, not of the GPU: the driver's own
_SPARE_THREADS = 64
_SCRATCH_FILE_BYTES = 16 << 20


def runner_plan(problem: ProblemOnDevice, build: Build, cache_dir: Path, *, sanitized: bool = False) -> RunnerPlan:
    """Return the plan for a built candidate of the problem's interface.

    Raises:
        DeviceError: the native host cannot be built.
        EngineError: the build has no library.
    """
    if build.library_path is None:
        raise EngineError("a candidate without a library was to be run")
    library = Path(build.library_path)
    if problem.device.kind is DeviceKind.CUDA:
        return _cuda_plan(problem, library, cache_dir)
    if problem.interface == Interface.TORCH:
        return _torch_plan(problem, library)
    return _native_plan(problem, library, cache_dir, sanitized=sanitized)


def _native_plan(problem: ProblemOnDevice, library: Path, cache_dir: Path, *, sanitized: bool) -> RunnerPlan:
    host = native_host(cache_dir, sanitize=SANITIZERS if sanitized else "")
    workspace = max(min(problem.device.memory_bytes // 8, _MOST_WORKSPACE), _LEAST_MEMORY)
    environment = dict(compute_environment(problem.device))
    if sanitized:
        environment |= {
            "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:detect_odr_violation=0",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=0",
        }
    confined = Confined(
        command=(str(host),),
        readable=(host, library.parent),
        env=environment,
        limits=_limits(problem, workspace + _LEAST_MEMORY, sanitized=sanitized),
        cpus=measurement_cores(),
    )
    return RunnerPlan(
        confined=confined,
        library=library,
        workspace_bytes=workspace,
        call_timeout_s=problem.call_timeout_s,
        load_timeout_s=problem.call_timeout_s,
    )


def _cuda_plan(problem: ProblemOnDevice, library: Path, cache_dir: Path) -> RunnerPlan:
    host = cuda_host(cache_dir)
    driver = driver_library().parent
    confined = Confined(
        command=(str(host),),
        readable=(host, library.parent, *(() if driver.is_relative_to("/usr") else (driver,))),
        env=compute_environment(problem.device) | {"LD_LIBRARY_PATH": str(driver)},
        devices=device_nodes(problem.device),
        limits=_limits(problem, _CUDA_HOST_MEMORY, sanitized=False),
        cpus=measurement_cores(),
    )
    return RunnerPlan(
        confined=confined,
        library=library,
        workspace_bytes=problem.device.memory_bytes // 8,
        call_timeout_s=problem.call_timeout_s,
        load_timeout_s=problem.call_timeout_s,
        uses_gpu=True,
    )


def _torch_plan(problem: ProblemOnDevice, library: Path) -> RunnerPlan:
    package = Path(ridgeline.__file__).parent
    rooms = tuple((package / room).resolve() for room in ("tools",))
    paths = [p for p in sys.path if p and Path(p).is_dir()]
    environment = compute_environment(problem.device) | {"PYTHONPATH": os.pathsep.join([str(package.parent), *paths])}
    confined = Confined(
        command=(sys.executable, "-P", "-m", "ridgeline.tools.runner"),
        readable=(*python_paths(), package.parent, *rooms, library.parent),  # an import lists the folder it looks in
        env=environment,
        limits=_limits(problem, problem.device.memory_bytes // 4 + _TORCH_MEMORY, sanitized=False),
        cpus=measurement_cores(),
    )
    return RunnerPlan(
        confined=confined,
        library=library,
        workspace_bytes=0,
        call_timeout_s=problem.call_timeout_s,
        load_timeout_s=_TORCH_LOAD_S,
    )


def _limits(problem: ProblemOnDevice, memory_bytes: int, *, sanitized: bool) -> Limits:
    cores = len(measurement_cores())
    return Limits(
        wall_s=_LONGEST_RUN_S,
        cpu_s=int(_LONGEST_RUN_S) * cores,
        memory_bytes=memory_bytes,
        file_bytes=_SCRATCH_FILE_BYTES,
        disk_bytes=_SCRATCH_FILE_BYTES,
        processes=2 * cores + _SPARE_THREADS,
        cap_address_space=not sanitized,
    )
