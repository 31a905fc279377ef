"""This machine as a search uses it: the target on its device, the check that kernels can run, the local engine."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ridgeline.graph.session.on_device import on_device
from ridgeline.problems.syntax import missing_packages, odd_counts, read_reference
from ridgeline.tools.errors import BadReferenceError, DeviceError, ProblemError, SandboxError, without_name
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.printable import printable_name

if TYPE_CHECKING:
    from pathlib import Path

    from ridgeline.graph.search.events import OnEvent
    from ridgeline.problems.spec import ProblemSpec
    from ridgeline.problems.targets import Size
    from ridgeline.tools.engine import Engine
    from ridgeline.tools.machine.waits import Listener
    from ridgeline.tools.records.problem import DescribedTarget, Device, Target

logger = logger_of(__name__)

_RAISED = re.compile(r"[\w.()]+ raised ")
"""How the judge begins of a part of the reference that raised: `forward() raised ValueError: …`."""


def target_of(problem: ProblemSpec, device: str) -> Target:
    """Return the problem on the device called `device`: "cpu", "cuda", "cuda:1".

    Raises:
        DeviceError: there is no such device, or no compiler that builds for this GPU.
        ProblemError: the problem has no such target, or its reference imports a package that is not installed.
    """
    from ridgeline.tools.build.toolchain import toolchain_for
    from ridgeline.tools.machine.devices import detect_device
    from ridgeline.tools.records.vocabulary import DeviceKind

    found = detect_device(device)
    if found.kind is DeviceKind.CUDA:  # refused before PyTorch starts; a search that is over needs no g++
        toolchain_for(found)
    target = on_device(problem, found)
    _refuse_missing_packages(problem, target.reference_source)
    return target


def target_of_parking(problem: ProblemSpec, device: str, begun: Device) -> tuple[Target, str]:
    """Return the problem on the device of a search that has begun and parks, and that this machine lacks it, or "".

    Raises:
        DeviceError: the device is here, and no compiler that builds for it.
        ProblemError: as `target_of` does.
    """
    from ridgeline.tools.machine.devices import detect_device

    try:
        here = detect_device(device)
    except DeviceError as error:
        logger.info("%s", error)
    else:
        if (here.kind, here.arch) == (begun.kind, begun.arch):
            return target_of(problem, device), ""
    name = printable_name(begun.name)
    return on_device(problem, begun), f"{name} is not on this machine: what needs it waits; resume this run where it is"


def _refuse_missing_packages(problem: ProblemSpec, source: str) -> None:
    """Refuse a reference that imports a missing package, before the judge does, which first waits for the device.

    A reference that changes sys.path is left to the judge.
    """
    missing = [] if "sys.path" in source else missing_packages(ast.parse(source))
    if missing:
        raise ProblemError(
            f"{problem.reference_given}: imports {', '.join(missing)}, not installed here; install it "
            "beside Ridgeline, or copy it in: a reference is one file, apart from its folder"
        )


@contextlib.contextmanager
def users_reference(problem: ProblemSpec, kind: str) -> Iterator[None]:
    """Name the reference as the user does in an error of the judge, which knows its text alone, and the sizes in it."""
    try:
        yield
    except BadReferenceError as error:
        said = without_name(error)
        raise type(error)(f"{problem.reference_given}: {said}{_sizes_words(problem, kind, said)}") from error


def _sizes_words(problem: ProblemSpec, kind: str, said: str) -> str:
    """Return " (with B = -3 of problem.yaml's targets.cpu.sizes; perhaps for B, in the reference 64)", "" without sizes.

    The sizes that are worth a look are told where the reference raised an error, and not where it was refused.
    """
    sizes = problem.target(kind).sizes
    if not sizes:
        return ""
    stated = ", ".join(f"{name} = {value}" for name, value in sizes.items())
    odd = _odd_sizes(problem, sizes) if _RAISED.match(said) else {}
    perhaps = ", or ".join(f"{name}, in the reference {value}" for name, value in odd.items())
    return f" (with {stated} of {problem.given}'s targets.{kind}.sizes{f'; perhaps for {perhaps}' if perhaps else ''})"


def _odd_sizes(problem: ProblemSpec, sizes: Mapping[str, Size]) -> dict[str, str]:
    """Return what the reference has in the place of the sizes that `odd_counts` tells."""
    with contextlib.suppress(ProblemError):  # the file may be gone by now
        path, given = problem.path.parent / problem.reference, problem.reference_given
        return odd_counts(read_reference(path, str(given), given)[1], sizes)
    return {}


def check_machine(device: str, *, allow_unsafe: bool = False) -> None:
    """Refuse a machine on which no kernel can be built or run.

    Raises:
        DeviceError: the machine has no compiler for the device, or its locks' folder cannot be used.
        StorageError: the build cache is not writable.
        SandboxError: no sandbox works here.
    """
    from ridgeline.tools.build.cache import check_writable
    from ridgeline.tools.build.toolchain import toolchain_for
    from ridgeline.tools.machine.devices import detect_device
    from ridgeline.tools.machine.places import default_cache_dir, lock_dir
    from ridgeline.tools.sandbox.sandbox import probe_sandbox

    toolchain_for(detect_device(device))
    check_writable(default_cache_dir())
    lock_dir()
    probe_sandbox(allow_unsafe=allow_unsafe)


def measuring_devices(device: str, found: Device) -> tuple[Device, ...]:
    """Return the devices that a search on `device` measures on, `found` first: "cuda" is every GPU like it."""
    from ridgeline.tools.machine.devices import same_gpus

    return same_gpus(found) if device == "cuda" else (found,)


@contextlib.asynccontextmanager
async def open_engine(
    device: str = "cpu",
    *,
    log: Path | None = None,
    allow_unsafe: bool = False,
    on_wait: Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    refuses: Callable[[DescribedTarget], bool] | None = None,
) -> AsyncIterator[Engine]:
    """Give the local engine; every process it started ends with the block.

    The engine measures on `measuring_devices`. Once `is_stopping()`, it drops the work that waits for its turn.
    A problem that the caller `refuses` is described without a wait for another search's measurement.

    Raises:
        StorageError: the build cache is not writable.
    """
    from ridgeline.tools.build.cache import check_writable
    from ridgeline.tools.engines.local import LocalEngine
    from ridgeline.tools.machine.devices import detect_device
    from ridgeline.tools.machine.places import default_cache_dir

    await asyncio.to_thread(check_writable, default_cache_dir())
    found = await asyncio.to_thread(detect_device, device)
    alike = await asyncio.to_thread(measuring_devices, device, found)
    engine = LocalEngine(
        log=log, allow_unsafe=allow_unsafe, on_wait=on_wait, alike=alike, is_stopping=is_stopping, refuses=refuses
    )
    try:
        yield engine
    finally:
        await engine.aclose()


@contextlib.asynccontextmanager
async def open_away_engine(
    device: Device,
    *,
    log: Path | None = None,
    allow_unsafe: bool = False,
    is_stopping: Callable[[], bool] = lambda: False,
) -> AsyncIterator[Engine]:
    """Give the engine of a machine that lacks the search's device; every process it started ends with the block.

    Raises:
        StorageError: the build cache is not writable.
    """
    from ridgeline.tools.build.cache import check_writable
    from ridgeline.tools.engines.away import AwayEngine
    from ridgeline.tools.engines.local import LocalEngine
    from ridgeline.tools.machine.places import default_cache_dir

    builder = None
    if await asyncio.to_thread(_builds_for, device, allow_unsafe=allow_unsafe):
        await asyncio.to_thread(check_writable, default_cache_dir())
        builder = LocalEngine(log=log, allow_unsafe=allow_unsafe, is_stopping=is_stopping)
    engine = AwayEngine(builder)
    try:
        yield engine
    finally:
        await engine.aclose()


def _builds_for(device: Device, *, allow_unsafe: bool) -> bool:
    """Say whether a compiler here, confined, builds for a GPU that is elsewhere; for another processor none does."""
    from ridgeline.tools.build.toolchain import toolchain_for
    from ridgeline.tools.records.vocabulary import DeviceKind
    from ridgeline.tools.sandbox.sandbox import probe_sandbox

    if device.kind is not DeviceKind.CUDA:
        return False
    try:
        toolchain_for(device)
        probe_sandbox(allow_unsafe=allow_unsafe)
    except (DeviceError, SandboxError):
        return False
    return True


def on_wait(on_event: OnEvent) -> Listener:
    """Return the listener that tells `on_event` of waits for a device that others hold."""
    from ridgeline.tools.machine.waits import Wait

    def tell(wait: Wait | None) -> None:
        told = wait or Wait(device="", holder="", holders=0, is_news=False)
        device, holder, holders, is_news = told.device, told.holder, told.holders, told.is_news
        on_event({"event": "waiting", "device": device, "holder": holder, "holders": holders, "is_news": is_news})

    return tell
