"""The engine of one machine: builds side by side, measurements one at a time for each device."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import CompileTask, DescribeTask, Task
from ridgeline.tools.errors import EngineError, NotBegun, RidgelineError
from ridgeline.tools.local.evaluator_process import EvaluatorProcess, evaluator_command
from ridgeline.tools.local.first_look import Refuses, held_to_describe
from ridgeline.tools.machine.locks import DeviceLock
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.places import default_cache_dir
from ridgeline.tools.machine.python_env import clean_environment
from ridgeline.tools.machine.waits import Listener, Waits
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.results import Build
from ridgeline.tools.sandbox.sandbox import UNSAFE_VARIABLE, Sandbox, probe_sandbox

logger = logger_of(__name__)

R = TypeVar("R")

_BATCH_WINDOW_S = 0.01  # branches of one round ask within milliseconds of each other
_BATCHES_AT_ONCE = 2  # one slow build does not hold up those that come after it
_BUILD_LOCK = "cpu"  # builds disturb what is measured on the processor
_ENDED = "the build was ended before it finished"


class LocalEngine:
    """Implements `Engine` with processes of this machine. Use it from one event loop and `aclose()` it."""

    def __init__(
        self,
        *,
        cache_dir: Path | None = None,
        log: Path | None = None,
        allow_unsafe: bool = False,
        on_wait: Listener | None = None,
        evaluator: Callable[[Device], Sequence[str]] = evaluator_command,
        alike: Sequence[Device] = (),
        is_stopping: Callable[[], bool] = lambda: False,
        refuses: Refuses | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            cache_dir: builds and baselines; None: the default folder.
            log: file that receives the evaluators' stderr.
            allow_unsafe: run without a sandbox where none works.
            on_wait: called when another process holds a device.
            evaluator: gives an evaluator's command for a device.
            alike: devices that may stand in for each other; a candidate is measured on whichever is free.
            is_stopping: once true, tasks that wait for a device or a lock are dropped.
            refuses: what the caller refuses once it is described; its description does not wait for a measurement.
        """
        self._alike = tuple(alike)
        self._waits = Waits(on_wait, is_stopping=is_stopping)
        self._cache_dir = (cache_dir or default_cache_dir()).absolute()
        self._log = log
        self._allow_unsafe = allow_unsafe
        self._evaluator = evaluator
        self._refuses = refuses
        self._slots: dict[str, _DeviceSlot] = {}
        self._builders: dict[str, _Builder] = {}
        self._sandbox: Sandbox | None = None
        self._closed = False

    async def submit(self, task: Task[R]) -> R:
        """Run `task` and return its result.

        Raises:
            InputError: the task can never succeed as the user wrote it.
            EngineError: the infrastructure failed `task.retries` + 1 times.
            NotBegun: the task waited for its turn when a stop was asked for.
        """
        for attempt in range(task.retries + 1):
            try:
                return await self._attempt(task)
            except EngineError as error:
                if attempt == task.retries or self._closed:
                    raise
                logger.warning("%s: %s: trying again", task.name, error)
        raise EngineError(f"{task.name}: {task.retries} retries leave no attempt")

    async def aclose(self) -> None:
        """End every process the engine started; what was in flight raises EngineError, and so do later tasks."""
        self._closed = True
        builders, self._builders = self._builders, {}
        slots, self._slots = self._slots, {}
        await asyncio.gather(*(builder.aclose() for builder in builders.values()))
        await asyncio.gather(*(slot.evaluator.close() for slot in slots.values()))

    async def _attempt(self, task: Task[R]) -> R:
        self._expect_open()
        if isinstance(task, CompileTask):
            builder = await self._builder(task.problem.device)
            return await builder.build(task)  # type: ignore[return-value]  # R is Build for a CompileTask
        slot = self._free_slot(task)
        answer = await slot.ask(replace(task, problem=replace(task.problem, device=slot.device)))
        return task.read_result(answer)

    def _expect_open(self) -> None:
        if self._closed:
            raise EngineError("the engine is closed")

    def _free_slot(self, task: Task[Any]) -> _DeviceSlot:
        """Return the slot of the task's device, or of an alike device with fewer tasks."""
        device = task.problem.device
        if not task.runs_on_any_alike or device not in self._alike:
            return self._slot(device)
        slots = [self._slot(other) for other in (device, *(d for d in self._alike if d != device))]
        return min(slots, key=lambda slot: slot.waiting)

    def _slot(self, device: Device) -> _DeviceSlot:
        if device.uuid not in self._slots:
            environment = clean_environment(os.environ, cache_dir=self._cache_dir)
            environment |= {UNSAFE_VARIABLE: "1"} if self._allow_unsafe else {}
            evaluator = EvaluatorProcess(self._evaluator(device), environment, self._log)
            lock = DeviceLock(device.uuid, waits=self._waits)
            self._slots[device.uuid] = _DeviceSlot(evaluator, device, lock, self._waits, self._refuses)
        return self._slots[device.uuid]

    async def _builder(self, device: Device) -> _Builder:
        if self._sandbox is None:
            report = await asyncio.to_thread(probe_sandbox, allow_unsafe=self._allow_unsafe)
            self._sandbox = await asyncio.to_thread(Sandbox, report.tier)
        if device.arch not in self._builders:
            compiler = await asyncio.to_thread(Compiler, self._sandbox, self._cache_dir, device)
            self._expect_open()  # `aclose` knows no builder that is made after it
            self._builders.setdefault(device.arch, _Builder(compiler, DeviceLock(_BUILD_LOCK, waits=self._waits)))
        return self._builders[device.arch]


class _DeviceSlot:
    """One device: its evaluator, and the two locks that let one measurement run at a time."""

    def __init__(
        self,
        evaluator: EvaluatorProcess,
        device: Device,
        lock: DeviceLock,
        waits: Waits,
        refuses: Refuses | None,
    ) -> None:
        self.evaluator = evaluator
        self.device = device
        self.waiting = 0  # tasks here, the running one included
        self._lock = lock
        self._waits = waits
        self._refuses = refuses
        self._turn = asyncio.Lock()

    async def ask(self, task: Task[Any]) -> dict[str, Any]:
        self.waiting += 1
        had_to_wait = self._turn.locked()
        try:
            async with self._turn:
                if had_to_wait:
                    self._waits.check_begin()
                async with self._held(task):
                    return await self.evaluator.ask(task, task.timeout_s + task.candidate_s)
        finally:
            self.waiting -= 1

    def _held(self, task: Task[Any]) -> AbstractAsyncContextManager[None]:
        if isinstance(task, DescribeTask):
            return held_to_describe(self._lock, task.problem, self._refuses)
        return self._lock.exclusive() if task.holds_device_alone else self._lock.shared()


class _Builder:
    """Gathers builds that are asked for within moments into one batch."""

    def __init__(self, compiler: Compiler, lock: DeviceLock) -> None:
        self._compiler = compiler
        self._lock = lock
        self._waiting: list[tuple[CompileTask, asyncio.Future[Build]]] = []
        self._slots = asyncio.Semaphore(_BATCHES_AT_ONCE)
        self._running: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def build(self, task: CompileTask) -> Build:
        """Return the task's build; what is refused as it stands waits for no lock, since nothing runs for it.

        Raises:
            EngineError: the builder was closed before the build had ended.
        """
        if (refused := await self._compiler.refused(task)) is not None:
            return refused
        if self._is_closed:
            raise EngineError("the engine is closed")
        answer: asyncio.Future[Build] = asyncio.get_running_loop().create_future()
        self._waiting.append((task, answer))
        if len(self._waiting) == 1:
            self._start(self._next_batch())
        return await answer

    async def aclose(self) -> None:
        """End every batch; a build that comes later is refused."""
        self._is_closed = True
        for batch in list(self._running):
            batch.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._fail_waiting(EngineError(_ENDED))  # those of a batch that was ended before its first step

    def _start(self, batch: Coroutine[Any, Any, None]) -> None:
        running = asyncio.create_task(batch)
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def _next_batch(self) -> None:
        """Wait for more builds and for a free place, then build all that have gathered."""
        batch: list[tuple[CompileTask, asyncio.Future[Build]]] = []
        try:
            await asyncio.sleep(_BATCH_WINDOW_S)
            async with self._slots, self._lock.shared():
                batch, self._waiting = self._waiting, []
                await self._settle([(task, answer) for task, answer in batch if not answer.done()])
        except NotBegun as error:
            self._fail_waiting(error)
        finally:
            for _, answer in batch:
                _fail(answer, EngineError(_ENDED))
            if not batch:
                self._fail_waiting(EngineError(_ENDED))

    def _fail_waiting(self, error: RidgelineError) -> None:
        waiting, self._waiting = self._waiting, []
        for _, answer in waiting:
            _fail(answer, error)

    async def _settle(self, batch: list[tuple[CompileTask, asyncio.Future[Build]]]) -> None:
        """Answer every task; when the batch as a whole fails, build each alone, so that only the faulty one fails."""
        try:
            builds = await self._compiler.compile_batch([task for task, _ in batch])
        except RidgelineError as error:
            if len(batch) == 1:
                _fail(batch[0][1], error)
            else:
                for entry in batch:
                    await self._settle([entry])
        except (OSError, subprocess.SubprocessError, ValueError) as error:  # internal: no source can cause these
            logger.exception("a batch of %d builds failed", len(batch))
            for _, answer in batch:
                _fail(answer, EngineError(f"a build could not be run: {type(error).__name__}: {error}"))
        else:
            for (_, answer), build in zip(batch, builds, strict=True):
                with contextlib.suppress(asyncio.InvalidStateError):  # cancelled meanwhile
                    answer.set_result(build)


def _fail(answer: asyncio.Future[Build], error: RidgelineError) -> None:
    if not answer.done():
        answer.set_exception(error)
