"""A reference that looks broken, or of no use, is judged at once, whoever measures on the processor.

To describe a problem takes no clock, but cores that another search's measurement needs, so it waits until that is over:
for minutes, of a large reference. A mistake in the reference would be told as late. So while a description waits, the
reference is outlined by fake tensors in one process of the lowest priority. An outline is no verdict: the judge, which
then does not wait, says what is wrong in its own words, or describes a reference that only looked broken. So it is with
a reference that the engine's user would refuse as soon as it is described, such as one that the offline model does not cover.
One whose sizes this machine's memory does not hold is refused by its outline: the judge goes by the same shapes.

On a GPU a description waits as before: its judge takes memory there that a measurement may need.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from ridgeline.tools.errors import BadReferenceError, EngineError
from ridgeline.tools.judge.outline import Outline, OutlineCode
from ridgeline.tools.judge.outline_process import OutlineProcess
from ridgeline.tools.machine.locks import DeviceLock
from ridgeline.tools.machine.waits import TELL_AFTER_S
from ridgeline.tools.records.problem import DescribedTarget, Target
from ridgeline.tools.records.vocabulary import DeviceKind

_BROKEN = frozenset({OutlineCode.PACKAGE, OutlineCode.FORM, OutlineCode.RAISED, OutlineCode.RANDOM, OutlineCode.STATE})
_LOWEST_PRIORITY = 19
CROWDED = 2.0
"""Processes that run or wait to, for each core: one for each is what a single measurement makes."""

Refuses = Callable[[DescribedTarget], bool]
"""Says whether the engine's user refuses a problem once it is described."""


@contextlib.asynccontextmanager
async def held_to_describe(lock: DeviceLock, problem: Target, refuses: Refuses | None = None) -> AsyncIterator[None]:
    """Hold the device for a description, shared; not where another process holds it and the reference will be refused."""
    if problem.device.kind is not DeviceKind.CPU:
        async with lock.shared():
            yield
        return
    async with contextlib.AsyncExitStack() as stack:
        taking = asyncio.ensure_future(stack.enter_async_context(lock.shared()))
        looking = asyncio.ensure_future(_looks_refused(problem, refuses))
        try:
            await asyncio.wait({taking, looking}, return_when=asyncio.FIRST_COMPLETED)
            if taking.done() or not await looking:
                await taking
        finally:
            await _ended(taking, looking)
        yield


async def _looks_refused(problem: Target, refuses: Refuses | None) -> bool:
    """Say whether an outline speaks against the reference; short waits, of which nobody is told, end before it begins.

    Raises:
        BadReferenceError: it is too large for the device.
    """
    await asyncio.sleep(TELL_AFTER_S)
    with contextlib.suppress(EngineError, OSError, ValueError):  # an outline that fails says nothing
        outline = await _outlined(problem, with_graph=refuses is not None)
        if outline.code in _BROKEN:
            return True
        _refuse_too_large(outline, problem)
        if refuses is not None and outline.description is not None:
            return await asyncio.to_thread(refuses, problem.described(outline.description))
    return False


def _refuse_too_large(outline: Outline, problem: Target) -> None:
    """Refuse a reference as the judge does, which first makes its inputs: what they take another's measurement may need.

    Raises:
        BadReferenceError: the device lacks the least that judging takes.
    """
    on_device = outline.on(problem.device)
    if not outline.code and on_device.code is OutlineCode.MEMORY:
        raise BadReferenceError.of_text(on_device.reason)


async def _outlined(problem: Target, *, with_graph: bool) -> Outline:
    outlines = await _started(with_graph=with_graph)
    try:
        return await asyncio.to_thread(outlines.outline, problem.reference_source, problem.tolerance)
    finally:
        await asyncio.to_thread(outlines.close)  # its thread, where one waits, ends with the process


async def _started(*, with_graph: bool) -> OutlineProcess:
    starting = asyncio.ensure_future(asyncio.to_thread(OutlineProcess, niceness=_niceness(), with_graphs=with_graph))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        (await starting).close()
        raise


def _niceness() -> int:
    """Return the lowest priority, beside which a measurement loses nothing; the usual one on a crowded machine.

    There the lowest is never due, and a measurement has no core to itself anyway.
    """
    is_crowded = os.getloadavg()[0] > CROWDED * (os.cpu_count() or 1)
    return 0 if is_crowded else _LOWEST_PRIORITY


async def _ended(*tasks: asyncio.Future[None] | asyncio.Future[bool]) -> None:
    """Cancel what has not ended, and wait until it has."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
