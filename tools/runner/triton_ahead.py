"""Compiles a module's Triton kernels before its runner starts, since a runner may start no compiler (no torch here)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from ridgeline.tools.build.cache import BuildCache, unfit
from ridgeline.tools.build.toolchain import find_toolchain
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.held_folders import hold_folder
from ridgeline.tools.machine.python_env import python_command
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import ArgKind, ReasonCode, Role, Status
from ridgeline.tools.runner.device_plans import DEVICE_PLANS
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.plan import RUNNERS, module_setup, runner_plan
from ridgeline.tools.runner.triton_wire import GPU_OPEN, PROGRESS, InputForm, TritonSpec
from ridgeline.tools.runner.wire import TRITON_KERNELS
from ridgeline.tools.sandbox.process import Limit
from ridgeline.tools.sandbox.sandbox import Confined, ExitStatus, Sandbox, claim_workdir

_VERSION = 1
_LIMIT_S = 240.0  # an autotuned kernel is compiled once for each of its configurations
_PROCESSES = 256
_LAST_LINES, _LAST_CHARACTERS = 4, 500
_CODES = {
    Limit.WALL: ReasonCode.LOAD_TIMEOUT,
    Limit.MEMORY: ReasonCode.OUT_OF_MEMORY,
}
_BUNDLE, _SPEC = "bundle.zip", "spec.json"


def kernels_ahead(
    problem: DescribedTarget, candidate: Candidate, build: Build, *, sandbox: Sandbox, cache_dir: Path
) -> Path | None:
    """Return the file of a module's compiled kernels; None where its source has nothing to do with Triton.

    The GPU must be free: Triton compiles what is launched.

    Raises:
        RunnerFailure: the module failed when it was called.
        EngineError: the sandbox could not be set up, or the GPU not be opened in it.
    """
    is_possible = RUNNERS[problem.interface].may_use_triton and DEVICE_PLANS[problem.device.kind].uses_gpu
    if not is_possible or "triton" not in candidate.source:
        return None
    cache = BuildCache(cache_dir)
    # the spec holds `forward`'s scalars too: a kernel may be compiled for their values
    made_by = [_VERSION, _triton_version(), build.key, problem.device.driver]
    spec = TritonSpec(module=module_setup(problem, candidate), inputs=_inputs(problem))
    key = hashlib.sha256(f"triton {json.dumps([*made_by, spec.to_json()])}".encode()).hexdigest()
    found = cache.find(key)
    if found is None:
        found = _compiled(_Compilation(problem, candidate, build, spec, key), cache, sandbox)
    if found.library_path is None:
        raise EngineError("the build cache lost what Triton compiled")
    return Path(found.library_path)


@dataclass(frozen=True, slots=True)
class _Compilation:
    problem: DescribedTarget
    candidate: Candidate
    build: Build
    spec: TritonSpec
    key: str  # of its kernels


def _compiled(asked: _Compilation, cache: BuildCache, sandbox: Sandbox) -> Build:
    held = hold_folder(cache.root / "tmp", "triton")
    folder = held.path
    try:
        shutil.copyfile(str(asked.build.library_path), folder / _BUNDLE)
        (folder / _SPEC).write_text(json.dumps(asked.spec.to_json()), encoding="utf-8")
        confined = replace(_confined(asked, cache.root), workdir=claim_workdir(folder))
        ended, said, was_open = _run(sandbox, confined)
        if not ended.is_success:
            raise _failure(ended, said, was_open=was_open)
        if refusal := unfit(folder / TRITON_KERNELS):  # the module can end its process as it likes
            reason = f"while Triton compiled its kernels: what it left is not taken: {refusal}"
            raise RunnerFailure(ReasonCode.LOAD_FAILED, reason)
        return cache.publish(Build(key=asked.key, status=Status.OK), folder / TRITON_KERNELS)
    finally:
        held.remove()


def _run(sandbox: Sandbox, confined: Confined) -> tuple[ExitStatus, str, bool]:
    """Return how the process ended, what it printed, and whether it told that the GPU was open."""
    ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    with open(ours, "rb", buffering=0) as progress:
        with open(theirs, "wb"):
            ended, said = sandbox.run(confined, pass_fds={PROGRESS: theirs})
        return ended, said, progress.read(len(GPU_OPEN)) == GPU_OPEN


def _failure(ended: ExitStatus, said: str, *, was_open: bool) -> RunnerFailure | EngineError:
    """Return the machine's fault when the GPU was not open yet, and the module's fault afterwards."""
    words = _last_words(said) or ended.message
    if not was_open:
        return EngineError(f"Triton cannot be run ahead: {words}")
    code = _CODES.get(ended.limit, ReasonCode.CRASHED)
    return RunnerFailure(code, f"while Triton compiled its kernels: {words}")


def _last_words(said: str) -> str:
    """Return the last lines that were printed: a compiler's own message stands before Python's."""
    return " | ".join(line.strip() for line in said.splitlines()[-_LAST_LINES:] if line.strip())[-_LAST_CHARACTERS:]


def _confined(asked: _Compilation, cache_dir: Path) -> Confined:
    """Return a runner's confinement, but with processes: a C compiler and ptxas."""
    runner = runner_plan(asked.problem, asked.build, cache_dir, candidate=asked.candidate).confined
    return replace(
        runner,
        command=python_command("runner.worker.triton_main", _BUNDLE, _SPEC, TRITON_KERNELS),
        readable=(*runner.readable, *find_toolchain(asked.problem.device.kind).readable),
        limits=replace(runner.limits, wall_s=_LIMIT_S, processes=_PROCESSES),
        allow_processes=True,
        cpus=(),
    )


def _triton_version() -> str:
    """Return Triton's version, "" where it is not installed; the module's own import fails then."""
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return ""


def _inputs(problem: DescribedTarget) -> tuple[InputForm, ...]:
    inputs = problem.description.signature.with_role(Role.INPUT)
    return tuple(InputForm(shape=a.shape, strides=a.strides, dtype=a.dtype) for a in inputs if a.kind is ArgKind.TENSOR)
