"""Source -> shared object: a batch at a time, each compile command confined, results from the cache where it can."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from ridgeline.tools.build.cache import BuildCache
from ridgeline.tools.build.device_toolchain import toolchain_for
from ridgeline.tools.build.messages import explain, explain_limit, plain_log, trim_log
from ridgeline.tools.build.ninja_batch import BuildCommand, BuildOutcome, run_batch
from ridgeline.tools.build.recipe import OUTPUT, WALL_PER_CPU, Recipe, c_recipe, module_recipe, refuse, torch_recipe
from ridgeline.tools.build.toolchain import Toolchain, cuda_home, find_toolchain
from ridgeline.tools.build.torch_paths import find_torch_paths
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import EngineError, StorageError
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, ReasonCode, Status
from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, claim_workdir

logger = logging.getLogger(__name__)

OUTPUT_BYTES = 256 << 20  # what one build may write
BUILD_PROCESSES = 64
_PAST_LIMIT, _SANDBOX_FAILED = 124, (125, 127)  # exit statuses of Sandbox.argv
_CPU_LIMIT_REACHED = signal.strsignal(signal.SIGXCPU) or ""  # as g++ reports the end of its own child
TORCH_BUILD_CORES = 2  # a stock torch build takes 1.5 GB: no more than one for every two cores


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    recipe: Recipe
    folder: Path
    name: str


class Compiler:
    """Builds candidates for one device in the sandbox; every answer is a `Build`, whatever the source did."""

    def __init__(self, sandbox: Sandbox, cache_dir: Path, device: Device, *, cores: int | None = None) -> None:
        self._sandbox = sandbox
        self._cache_dir = cache_dir
        self._cache = BuildCache(cache_dir)
        self._device = device
        cores = cores or len(os.sched_getaffinity(0))
        self._pools = {"compile": cores, "torch": max(1, cores // TORCH_BUILD_CORES)}
        self._toolchain: Toolchain | None = None

    async def compile_batch(self, tasks: Sequence[CompileTask]) -> list[Build]:
        """Build every task and return the builds in order; equal sources are built once.

        Raises:
            DeviceError: this machine has no compiler for the device, or none that fits it.
            EngineError: ninja failed, or torch does not import.
            StorageError: the cache's disk is full or read-only.
        """
        builds: dict[int, Build] = {}
        recipes: dict[int, Recipe] = {}
        for index, task in enumerate(tasks):
            answer = await self._prepare(task)
            if isinstance(answer, Build):
                builds[index] = answer
            else:
                recipes[index] = answer
        unique = {recipe.key: recipe for recipe in recipes.values()}
        built = await self._build(list(unique.values())) if unique else {}
        return [builds[i] if i in builds else built[recipes[i].key] for i in range(len(tasks))]

    async def _prepare(self, task: CompileTask) -> Build | Recipe:
        """Return the build at once when it is refused or cached, else how to make it."""
        refusal = refuse(task)
        toolchain = await self._find_toolchain()
        if refusal:
            key = hashlib.sha256(f"refused\n{toolchain.version}\n{task.candidate.source!r}".encode()).hexdigest()
            return Build.failed(key, refusal)
        if task.candidate.interface is Interface.TORCH:
            toolkit = str(cuda_home(toolchain.compiler)) if self._device.kind is DeviceKind.CUDA else ""
            paths = await find_torch_paths(self._cache_dir, self._device.kind.value, toolkit)
            recipe = torch_recipe(task, toolchain, paths)
        elif task.candidate.interface is Interface.MODULE:
            host = await asyncio.to_thread(find_toolchain, DeviceKind.CPU)
            recipe = module_recipe(task, toolchain, host, metadata.version("torch"))
        else:
            recipe = c_recipe(task, toolchain)
        cached = await asyncio.to_thread(self._cache.find, recipe.key)
        return cached or recipe

    async def _find_toolchain(self) -> Toolchain:
        if self._toolchain is None:
            self._toolchain = await asyncio.to_thread(toolchain_for, self._device)
        return self._toolchain

    async def _build(self, recipes: list[Recipe]) -> dict[str, Build]:
        with self._batch_folder() as folder:
            with self._storing():
                jobs = [_lay_out(recipe, folder, f"c{index}") for index, recipe in enumerate(recipes)]
            commands = [self._command(job) for job in jobs]
            outcomes = await run_batch(folder, commands, self._pools)
            toolchain = await self._find_toolchain()
            builds = [
                await asyncio.to_thread(self._finish, job, outcome, toolchain.version)
                for job, outcome in zip(jobs, outcomes, strict=True)
            ]
        return {build.key: build for build in builds}

    @contextlib.contextmanager
    def _batch_folder(self) -> Iterator[Path]:
        with self._storing():
            folder = Path(tempfile.mkdtemp(prefix="batch-", dir=self._cache_dir / "tmp"))
            folder.chmod(0o755)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            remedy = "free some space, or set RIDGELINE_CACHE_DIR elsewhere"
            raise StorageError(f"build cache {self._cache_dir}: {why}: {remedy}") from error

    def _command(self, job: _Job) -> BuildCommand:
        """Return the job's command, confined to its own folder and the toolchain."""
        limits = Limits(
            wall_s=job.recipe.cpu_s * WALL_PER_CPU,
            cpu_s=job.recipe.cpu_s,
            memory_bytes=job.recipe.memory_bytes,
            file_bytes=OUTPUT_BYTES,
            processes=BUILD_PROCESSES,
        )
        confined = Confined(
            command=job.recipe.command,
            workdir=job.folder,
            readable=job.recipe.readable,
            env=job.recipe.environment,
            limits=limits,
            allow_processes=True,
        )
        argv = tuple(self._sandbox.argv(confined))
        return BuildCommand(name=job.name, argv=argv, pool=job.recipe.pool)

    def _finish(self, job: _Job, outcome: BuildOutcome, toolchain: str) -> Build:
        """Return what became of one command; a library it left is published to the cache."""
        recipe = job.recipe
        log = trim_log(plain_log(outcome.log, job.folder))
        build = Build(
            key=recipe.key,
            status=Status.OK,
            flags=recipe.flags,
            toolchain=toolchain,
            log=log,
            build_s=outcome.seconds,
        )
        library = job.folder / OUTPUT
        if outcome.exit_code == 0 and library.is_file() and not library.is_symlink():
            return self._cache.publish(build, library)
        reason_code, reason = _failure(outcome, log, recipe, self._device.arch)
        return replace(build, status=Status.COMPILE_ERROR, reason_code=reason_code, reason=reason)


def _lay_out(recipe: Recipe, batch: Path, name: str) -> _Job:
    folder = batch / name
    folder.mkdir()
    for file, text in recipe.files.items():
        (folder / file).write_text(text, encoding="utf-8")
    claim_workdir(folder)
    return _Job(recipe=recipe, folder=folder, name=name)


def _failure(outcome: BuildOutcome, log: str, recipe: Recipe, arch: str) -> tuple[ReasonCode, str]:
    """Return why a command left no library.

    Raises:
        EngineError: the sandbox failed, which no source can cause.
    """
    last = outcome.log.rstrip().rsplit(b"\n", 1)[-1].decode(errors="replace")
    if outcome.exit_code is None or (outcome.exit_code in _SANDBOX_FAILED and last.startswith("sandbox: ")):
        raise EngineError(f"a build could not be run: {last or 'no exit status'}")
    if (outcome.exit_code == _PAST_LIMIT and "wall" in last) or _CPU_LIMIT_REACHED in log:
        return ReasonCode.COMPILER_TIMEOUT, f"the compiler was stopped after {recipe.cpu_s} s: simplify the source"
    if outcome.exit_code == _PAST_LIMIT:
        limit = last.removeprefix("sandbox: killed: ")
        return ReasonCode.COMPILER_FAILED, f"the compiler was stopped: it reached its limit of {limit}"
    if limit := explain_limit(log, file_bytes=OUTPUT_BYTES, memory_bytes=recipe.memory_bytes):
        return ReasonCode.COMPILER_FAILED, limit
    return explain(log, recipe.entry, arch)
