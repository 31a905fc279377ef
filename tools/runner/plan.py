"""Plans for starting a candidate's runner: the interfaces as a runner sees them, on each kind of device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.hang_limit import reference_limit_s
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.python_env import compute_environment, python_command, python_path
from ridgeline.tools.records.module_contract import ModuleContract, ModuleSetup
from ridgeline.tools.records.problem import DescribedTarget, Target
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import ArgKind, Interface
from ridgeline.tools.runner.device_plans import DEVICE_PLANS, BuiltCandidate, runner_limits
from ridgeline.tools.runner.native_host import fault_watcher
from ridgeline.tools.runner.start import PythonPlan, RunnerPlan
from ridgeline.tools.runner.wire import TRITON_KERNELS, PythonSetup
from ridgeline.tools.sandbox.python import package_paths
from ridgeline.tools.sandbox.sandbox import Confined, Limits

_TORCH_MEMORY = 3 << 30  # torch's own libraries and allocator
_TORCH_LOAD_S = 90.0  # importing torch on a busy machine
_OWN_FOLDER_BYTES = 512 << 20  # of a Python runner: a library, extensions, kernels that Triton compiled ahead


class InterfaceRunner(Protocol):
    """One interface, as a runner sees it."""

    starts_ahead: bool  # a runner may be started before its candidate is known
    may_use_triton: bool  # the source is Python, whose kernels Triton compiles on a GPU

    def plan(self, built: BuiltCandidate) -> RunnerPlan:
        """Return the plan for one candidate.

        Raises:
            DeviceError: the native host or the fault watcher cannot be built.
        """
        ...


class CRunner:
    """Interface `c`: the native host calls a function of the library."""

    starts_ahead = False
    may_use_triton = False

    def plan(self, built: BuiltCandidate) -> RunnerPlan:
        return DEVICE_PLANS[built.problem.device.kind].native(built)


class TorchRunner:
    """Interface `torch`: a Python runner calls a function of an extension."""

    starts_ahead = True
    may_use_triton = False

    def plan(self, built: BuiltCandidate) -> RunnerPlan:
        return _candidate_plan(built, module=None)


class ModuleRunner:
    """Interface `module`: a Python runner makes and calls the `ModelNew` of a file."""

    starts_ahead = True
    may_use_triton = True

    def plan(self, built: BuiltCandidate) -> RunnerPlan:
        return _candidate_plan(built, module=module_setup(built.problem, built.candidate))


RUNNERS: dict[Interface, InterfaceRunner] = {
    Interface.C: CRunner(),
    Interface.TORCH: TorchRunner(),
    Interface.MODULE: ModuleRunner(),
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
    built = BuiltCandidate(
        problem=problem,
        library=Path(build.library_path),
        cache_dir=cache_dir,
        candidate=candidate,
        sanitized=sanitized,
        kernels=kernels,
    )
    return RUNNERS[problem.interface].plan(built)


def alone(problem: DescribedTarget, build: Build, cache_dir: Path) -> Confined | None:
    """Return how a candidate is confined when it runs alone, under a watching tool or with clocks of its own.

    None for a build without a library, and for a Python runner, which has no mode without a judge.

    Raises:
        DeviceError: the native host cannot be built.
    """
    if problem.interface.runs_in_python or not build.library_path:
        return None
    return runner_plan(problem, build, cache_dir).confined


def reference_plan(problem: DescribedTarget, module: ModuleContract, cache_dir: Path) -> RunnerPlan:
    """Return the plan for a runner that holds the reference, as it would hold a module that a candidate wrote.

    Raises:
        DeviceError: the fault watcher cannot be built.
    """
    setup = module.setup(f"{problem.reference_source}\n\nModelNew = Model\n", _tensor_names(problem))
    plan = _python_plan(problem, cache_dir, files=(), module=setup)
    return replace(plan, call_timeout_s=reference_limit_s(problem.call_timeout_s))


def _candidate_plan(built: BuiltCandidate, *, module: ModuleSetup | None) -> RunnerPlan:
    library = built.library
    files = ((library, library.name), *(((built.kernels, TRITON_KERNELS),) if built.kernels else ()))
    plan = _python_plan(built.problem, built.cache_dir, files=files, module=module)
    return replace(plan, library=Path(library.name))


def _python_plan(
    problem: DescribedTarget, cache_dir: Path, *, files: tuple[tuple[Path, str], ...], module: ModuleSetup | None
) -> RunnerPlan:
    """Return the plan of a Python runner, into whose own folder `files` are copied."""
    device = DEVICE_PLANS[problem.device.kind]
    watcher = fault_watcher(cache_dir)
    confined = Confined(
        command=python_command("runner.worker"),
        readable=(*package_paths(), watcher, *device.driver_folders()),
        env=_bound_by_themselves(python_environment(problem), watcher),
        devices=device.nodes(problem.device),
        limits=_python_limits(problem),
        cpus=measurement_cores(),
    )
    python = PythonPlan(
        starts_in=cache_dir / "tmp",
        files=files,
        setup=PythonSetup(
            device=problem.device.kind,
            watcher=str(watcher),
            module=module,
            weights_show=problem.description.weights_show,
        ),
    )
    return RunnerPlan(
        confined=confined,
        library=Path("reference"),
        python=python,
        uses_gpu=device.uses_gpu,
        workspace_bytes=0,
        call_timeout_s=problem.call_timeout_s,
        load_timeout_s=_TORCH_LOAD_S,
    )


def python_environment(problem: Target) -> dict[str, str]:
    """Return the environment of a confined Python that computes."""
    given = {"PYTHONPATH": python_path()} | DEVICE_PLANS[problem.device.kind].variables()
    return compute_environment(problem.device, bound=True) | given


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


def module_setup(problem: DescribedTarget, candidate: Candidate | None) -> ModuleSetup:
    """Return what the runner is told of a module.

    Raises:
        EngineError: the judge described no module, or no file is given.
    """
    description = problem.description
    if candidate is None or description.module is None:
        raise EngineError("a module was to be run before its problem was described")
    return description.module.setup(candidate.source, _tensor_names(problem))


def _tensor_names(problem: DescribedTarget) -> list[str]:
    """Return the reference's names of the pointers, in the order of the signature."""
    return [arg.source for arg in problem.description.signature.args if arg.kind is ArgKind.TENSOR]


def _python_limits(problem: DescribedTarget) -> Limits:
    own = _TORCH_MEMORY + DEVICE_PLANS[problem.device.kind].driver_bytes
    limits = runner_limits(problem.device.memory_bytes // 4 + own)
    return replace(limits, file_bytes=_OWN_FOLDER_BYTES, disk_bytes=2 * _OWN_FOLDER_BYTES)
