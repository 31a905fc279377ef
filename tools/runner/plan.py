"""Plans for starting a candidate's runner: one for each form of source, on each kind of device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.cuda_paths import linking_folder, named_folder
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.gpus import device_nodes, driver_library
from ridgeline.tools.machine.python_env import compute_environment, python_path
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface
from ridgeline.tools.runner.native_host import cuda_host, fault_watcher, native_host
from ridgeline.tools.runner.start import PythonPlan, RunnerPlan
from ridgeline.tools.runner.wire import TRITON_KERNELS, PythonSetup
from ridgeline.tools.sandbox.python import package_paths, python_command
from ridgeline.tools.sandbox.sandbox import Confined, Limits

_LONGEST_RUN_S = 3600.0  # a runner lives through one verification or measurement; each call has its own limit
_LEAST_MEMORY = 1 << 30
_MOST_WORKSPACE = 4 << 30
_TORCH_MEMORY = 3 << 30  # torch's own libraries and allocator
_TORCH_LOAD_S = 90.0  # importing torch on a busy machine
_CUDA_HOST_MEMORY = 8 << 30  # of the process, not of the GPU: the driver's own
_SPARE_THREADS = 64
_SCRATCH_FILE_BYTES = 16 << 20
_OWN_FOLDER_BYTES = 512 << 20  # of a Python runner: a library, extensions, kernels that Triton compiled ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A candidate's library, and what its runner needs beside the library."""

    problem: DescribedTarget
    library: Path
    cache_dir: Path
    candidate: Candidate | None = None  # needed by interface module, whose build is not the file itself
    sanitized: bool = False
    kernels: Path | None = None  # what Triton compiled ahead


class Form(Protocol):
    """One interface, as a runner sees it."""

    starts_ahead: bool  # a runner may be started before its candidate is known
    may_use_triton: bool  # the source is Python, whose kernels Triton compiles on a GPU

    def plan(self, built: Built) -> RunnerPlan:
        """Return the plan for one candidate.

        Raises:
            DeviceError: the native host or the fault watcher cannot be built.
        """
        ...


class CForm:
    """Interface `c`: the native host calls a function of the library."""

    starts_ahead = False
    may_use_triton = False

    def plan(self, built: Built) -> RunnerPlan:
        return _NATIVE_PLANS[built.problem.device.kind](built)


class TorchForm:
    """Interface `torch`: a Python runner calls a function of an extension."""

    starts_ahead = True
    may_use_triton = False

    def plan(self, built: Built) -> RunnerPlan:
        return _python_plan(built, module=None)


class ModuleForm:
    """Interface `module`: a Python runner makes and calls the `ModelNew` of a file."""

    starts_ahead = True
    may_use_triton = True

    def plan(self, built: Built) -> RunnerPlan:
        return _python_plan(built, module=module_contract(built.problem, built.candidate))


FORMS: dict[Interface, Form] = {
    Interface.C: CForm(),
    Interface.TORCH: TorchForm(),
    Interface.MODULE: ModuleForm(),
}


def runner_plan(
    problem: DescribedTarget,
    build: Build,
    cache_dir: Path,
    *,
    candidate: Candidate | None = None,
    sanitized: bool = False,
    kernels: Path | None = None,
) -> RunnerPlan:
    """Return the plan for a built candidate of the problem's interface.

    `candidate` is needed for interface module, whose build is what its file builds and not the file itself; `kernels`
    is what Triton compiled ahead.

    Raises:
        DeviceError: the native host cannot be built.
        EngineError: the build has no library.
    """
    if build.library_path is None:
        raise EngineError("a candidate without a library was to be run")
    built = Built(
        problem=problem,
        library=Path(build.library_path),
        cache_dir=cache_dir,
        candidate=candidate,
        sanitized=sanitized,
        kernels=kernels,
    )
    return FORMS[problem.interface].plan(built)


def _cpu_plan(built: Built) -> RunnerPlan:
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
        limits=replace(_limits(workspace + _LEAST_MEMORY), cap_address_space=not built.sanitized),
        cpus=measurement_cores(),
    )
    return RunnerPlan(
        confined=confined,
        library=built.library,
        workspace_bytes=workspace,
        call_timeout_s=problem.call_timeout_s,
        load_timeout_s=problem.call_timeout_s,
    )


def _cuda_plan(built: Built) -> RunnerPlan:
    problem = built.problem
    host = cuda_host(built.cache_dir)
    driver = driver_library().parent
    confined = Confined(
        command=(str(host),),
        readable=(host, built.library.parent, *(() if driver.is_relative_to("/usr") else (driver,))),
        env=compute_environment(problem.device) | {"LD_LIBRARY_PATH": str(driver)},
        devices=device_nodes(problem.device),
        limits=_limits(_CUDA_HOST_MEMORY),
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


_NATIVE_PLANS = {DeviceKind.CPU: _cpu_plan, DeviceKind.CUDA: _cuda_plan}


def _python_plan(built: Built, *, module: Mapping[str, Any] | None) -> RunnerPlan:
    problem, library = built.problem, built.library
    uses_gpu = problem.device.kind is DeviceKind.CUDA
    watcher = fault_watcher(built.cache_dir)
    confined = Confined(
        command=python_command("runner.worker"),
        readable=(*package_paths(), watcher, *_driver_folders(problem)),
        env=_bound_by_themselves(python_environment(problem), watcher),
        devices=device_nodes(problem.device) if uses_gpu else (),
        limits=_python_limits(problem),
        cpus=measurement_cores(),
    )
    python = PythonPlan(
        starts_in=built.cache_dir / "tmp",
        files=((library, library.name), *(((built.kernels, TRITON_KERNELS),) if built.kernels else ())),
        setup=PythonSetup(device=problem.device.kind, watcher=str(watcher), module=module),
    )
    return RunnerPlan(
        confined=confined,
        library=Path(library.name),
        python=python,
        uses_gpu=uses_gpu,
        workspace_bytes=0,
        call_timeout_s=problem.call_timeout_s,
        load_timeout_s=_TORCH_LOAD_S,
    )


def python_environment(problem: DescribedTarget) -> dict[str, str]:
    """Return the environment of a confined Python that computes."""
    given = {"PYTHONPATH": python_path()}
    if problem.device.kind is DeviceKind.CUDA:
        # Triton would start ldconfig to find the driver, and a runner may start no process.
        given["TRITON_LIBCUDA_PATH"] = str(linking_folder())
        outside = _driver_folders(problem)
        told = named_folder() or (outside[0] if outside else None)
        # Without the variable the loader finds the driver by itself, and torch's own libraries before the system's.
        if told is not None:
            given["LD_LIBRARY_PATH"] = str(told)
    return compute_environment(problem.device, in_python=True) | given


def _bound_by_themselves(environment: dict[str, str], watcher: Path) -> dict[str, str]:
    """Return the environment in which each of OpenMP's threads takes its core itself, as tier B's filter asks.

    LD_PRELOAD takes a path with a space or a colon apart. Threads stay unbound then: in tier B no bound thread could be
    started without the library.
    """
    if "OMP_PROC_BIND" not in environment:
        return environment
    if any(separator in str(watcher) for separator in " :"):
        return {name: value for name, value in environment.items() if name != "OMP_PROC_BIND"}
    return environment | {"LD_PRELOAD": str(watcher)}


def _driver_folders(problem: DescribedTarget) -> tuple[Path, ...]:
    """Return the folders of a GPU's driver that a sandbox does not show by itself."""
    if problem.device.kind is not DeviceKind.CUDA:
        return ()
    folders = (driver_library().parent, linking_folder(), named_folder())
    return tuple(dict.fromkeys(f for f in folders if f is not None and not f.is_relative_to("/usr")))


def module_contract(problem: DescribedTarget, candidate: Candidate | None) -> dict[str, Any]:
    """Return what the runner is told of a module: its source, how it is made and called, where its weights lie."""
    description = problem.description
    if candidate is None or description.module is None:
        raise EngineError("a module was to be run before its problem was described")
    tensors = [arg.source for arg in description.signature.args if arg.kind is ArgKind.TENSOR]
    state = {name: tensors.index(source) for name, source in description.module["state"].items()}
    return description.module | {"state": state, "source": candidate.source}


def _python_limits(problem: DescribedTarget) -> Limits:
    own = _CUDA_HOST_MEMORY + _TORCH_MEMORY if problem.device.kind is DeviceKind.CUDA else _TORCH_MEMORY
    limits = _limits(problem.device.memory_bytes // 4 + own)
    return replace(limits, file_bytes=_OWN_FOLDER_BYTES, disk_bytes=2 * _OWN_FOLDER_BYTES)


def _limits(memory_bytes: int) -> Limits:
    cores = len(measurement_cores())
    return Limits(
        wall_s=_LONGEST_RUN_S,
        cpu_s=int(_LONGEST_RUN_S) * cores,
        memory_bytes=memory_bytes,
        file_bytes=_SCRATCH_FILE_BYTES,
        disk_bytes=_SCRATCH_FILE_BYTES,
        processes=2 * cores + _SPARE_THREADS,
    )
