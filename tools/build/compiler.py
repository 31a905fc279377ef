"""Builds candidates a batch at a time: each compile command is confined, and finished builds come from the cache."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ridgeline.tools.build.cache import LIBRARY, UNREADABLE, BuildCache, check_writable, no_storage, unfit
from ridgeline.tools.build.failures import KILLED, KilledError, find_failure
from ridgeline.tools.build.fix_its import count_errors, read_fix_its, without_fix_its
from ridgeline.tools.build.interfaces import BUILDS, refuse
from ridgeline.tools.build.messages import plain_log, trim_log
from ridgeline.tools.build.ninja_batch import STATUS_FD, BuildCommand, BuildOutcome, run_batch
from ridgeline.tools.build.recipe import Recipe, refused_key
from ridgeline.tools.build.toolchain import Toolchain, toolchain_for
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.held_folders import hold_folder
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import ReasonCode, Status
from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, claim_workdir

logger = logger_of(__name__)

OUTPUT_BYTES = 256 << 20  # what one file of a build may have, and in tier A its temporary folder
FOLDER_BYTES = 512 << 20  # what one build may write in all
BUILD_PROCESSES = 64
TORCH_BUILD_CORES = 2  # cores for each torch build: one build takes 1.5 GB


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
        self._killed: set[str] = set()  # keys of builds that were killed, and not built since

    async def compile_batch(self, tasks: Sequence[CompileTask]) -> list[Build]:
        """Build every task and return the builds in order; equal sources are built once.

        Raises:
            DeviceError: this machine has no compiler for the device, or none that fits it.
            EngineError: ninja failed, torch does not import, or a compiler was killed. The batch's other builds are then
                in the cache.
            SandboxError: a program of the sandbox disappeared.
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

    async def refused(self, task: CompileTask) -> Build | None:
        """Return the build of a task that is refused as it stands, for which nothing is compiled; None of any other.

        Raises:
            DeviceError: this machine has no compiler for the device, or none that fits it.
        """
        refusal = refuse(task)
        return Build.failed(refusal, key=refused_key(task, await self._find_toolchain())) if refusal else None

    async def _prepare(self, task: CompileTask) -> Build | Recipe:
        """Return the build of a task that is refused or cached, else the recipe."""
        if refused := await self.refused(task):
            return refused
        toolchain = await self._find_toolchain()
        recipe = await BUILDS[task.problem.interface].recipe(task, toolchain, self._cache_dir)
        cached = await asyncio.to_thread(self._cache.find, recipe.key)
        return cached or recipe

    async def _find_toolchain(self) -> Toolchain:
        if self._toolchain is None:
            self._toolchain = await asyncio.to_thread(toolchain_for, self._device)
        return self._toolchain

    async def _build(self, recipes: list[Recipe]) -> dict[str, Build]:
        async with self._batch_folder() as folder:
            jobs, commands = await asyncio.to_thread(self._laid_out, recipes, folder)
            try:
                outcomes = await run_batch(folder, commands, self._pools)
            except EngineError:
                await asyncio.to_thread(check_writable, self._cache.root)  # a disk that is full by now is told as that
                raise
            toolchain = await self._find_toolchain()
            builds: list[Build] = []
            failed: list[EngineError] = []
            for job, outcome in zip(jobs, outcomes, strict=True):
                try:
                    builds.append(await asyncio.to_thread(self._finish, job, outcome, toolchain.version))
                except EngineError as error:
                    failed.append(error)
        self._killed -= {build.key for build in builds}
        if failed:
            raise failed[0]
        return {build.key: build for build in builds}

    @contextlib.asynccontextmanager
    async def _batch_folder(self) -> AsyncIterator[Path]:
        making = asyncio.create_task(asyncio.to_thread(hold_folder, self._cache_dir / "tmp", "batch"))
        try:
            with self._storing():
                held = await asyncio.shield(making)
            yield held.path
        finally:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(
                    (await making).remove
                )  # made in any case, also where this was cancelled meanwhile

    def _laid_out(self, recipes: list[Recipe], folder: Path) -> tuple[list[_Job], list[BuildCommand]]:
        """Return the recipes as jobs with folders of their own, and each job's command."""
        with self._storing():
            folder.chmod(0o755)
            jobs = [_lay_out(recipe, folder, f"c{index}") for index, recipe in enumerate(recipes)]
        return jobs, [self._command(job) for job in jobs]

    @contextlib.contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise no_storage(self._cache_dir, error) from error

    def _command(self, job: _Job) -> BuildCommand:
        """Return the job's command, confined to its own folder and the toolchain."""
        limits = Limits(
            wall_s=job.recipe.wall_s,
            cpu_s=job.recipe.cpu_s,
            memory_bytes=job.recipe.memory_bytes,
            file_bytes=OUTPUT_BYTES,
            disk_bytes=FOLDER_BYTES,
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
        argv = tuple(self._sandbox.argv(confined, report_fd=STATUS_FD))
        return BuildCommand(name=job.name, argv=argv, pool=job.recipe.pool)

    def _finish(self, job: _Job, outcome: BuildOutcome, toolchain: str) -> Build:
        """Return the build of a command that has ended; publish its library to the cache."""
        recipe = job.recipe
        messages = plain_log(outcome.log, job.folder)
        log = trim_log(without_fix_its(messages))
        build = Build(
            key=recipe.key,
            status=Status.OK,
            flags=recipe.flags,
            toolchain=toolchain,
            log=log,
            build_s=outcome.seconds,
        )
        library = job.folder / LIBRARY
        # os.path's answer is no where the source closed its folder, for which pathlib raises
        if outcome.exit_code == 0 and os.path.isfile(library) and not os.path.islink(library):
            if not (refusal := unfit(library)):
                return self._cache.publish(build, library)
            remedy = "" if refusal == UNREADABLE else "; make the source's tables and static arrays smaller"
            reason = f"the library is not taken: {refusal}{remedy}"
            finding = Finding(code=ReasonCode.COMPILER_FAILED, reason=reason)
        else:
            try:
                finding = find_failure(outcome, messages, log, recipe, self._device.arch, file_bytes=OUTPUT_BYTES)
            except KilledError:
                finding = self._told_of_kill(recipe)
            except EngineError:  # the compiler itself was not started
                self._sandbox.expect_programs()
                raise
        return replace(
            build,
            status=finding.status,
            reason_code=finding.code,
            reason=finding.reason,
            errors=count_errors(messages),
            fix_its=read_fix_its(messages, next(iter(recipe.files))),
        )

    def _told_of_kill(self, recipe: Recipe) -> Finding:
        """Return what a build that was killed once more is told as, where its source may have done that.

        Raises:
            EngineError: the engine is to try again, or the machine failed.
        """
        if recipe.runs_source and recipe.key in self._killed:
            return Finding(code=ReasonCode.COMPILER_FAILED, reason=f"{KILLED}, or by the file itself; it was so twice")
        self._killed.add(recipe.key)
        raise EngineError(KILLED)


def _lay_out(recipe: Recipe, batch: Path, name: str) -> _Job:
    folder = batch / name
    folder.mkdir()
    for file, text in recipe.files.items():
        (folder / file).write_text(text, encoding="utf-8")
    claim_workdir(folder)
    return _Job(recipe=recipe, folder=folder, name=name)
