"""A reference that looks broken is judged at once, whoever measures on the processor.

To describe a problem takes no clock, but cores that another search's measurement needs, so it waits until that is over:
for minutes, of a large reference. A mistake in the reference would be told as late. So while a description waits, the
reference is outlined by fake tensors in one process of the lowest priority. An outline is no verdict: the judge, which
then does not wait, says what is wrong in its own words, or describes a reference that only looked broken.

On a GPU a description waits as before: its judge takes memory there that a measurement may need.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.outline import Outline, OutlineCode
from ridgeline.tools.judge.outline_process import OutlineProcess
from ridgeline.tools.machine.locks import DeviceLock
from ridgeline.tools.machine.waits import TELL_AFTER_S
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.vocabulary import DeviceKind

_BROKEN = frozenset({OutlineCode.PACKAGE, OutlineCode.FORM, OutlineCode.RAISED, OutlineCode.RANDOM, OutlineCode.STATE})
_LOWEST_PRIORITY = 19


@contextlib.asynccontextmanager
async def held_to_describe(lock: DeviceLock, problem: Target) -> AsyncIterator[None]:
    """Hold the device for a description, shared; not where another process holds it and the reference looks broken."""
    if problem.device.kind is not DeviceKind.CPU:
        async with lock.shared():
            yield
        return
    async with contextlib.AsyncExitStack() as stack:
        taking = asyncio.ensure_future(stack.enter_async_context(lock.shared()))
        looking = asyncio.ensure_future(_looks_broken(problem))
        try:
            await asyncio.wait({taking, looking}, return_when=asyncio.FIRST_COMPLETED)
            if taking.done() or not await looking:
                await taking
        finally:
            await _ended(taking, looking)
        yield


async def _looks_broken(problem: Target) -> bool:
    """Say whether an outline speaks against the reference; short waits, of which nobody is told, end before it begins."""
    await asyncio.sleep(TELL_AFTER_S)
    with contextlib.suppress(EngineError, OSError, ValueError):  # an outline that fails says nothing
        return (await _outlined(problem)).code in _BROKEN
    return False


async def _outlined(problem: Target) -> Outline:
    outlines = await _started()
    try:
        return await asyncio.to_thread(outlines.outline, problem.reference_source, problem.tolerance)
    finally:
        await asyncio.to_thread(outlines.close)  # its thread, where one waits, ends with the process


async def _started() -> OutlineProcess:
    starting = asyncio.ensure_future(asyncio.to_thread(OutlineProcess, niceness=_LOWEST_PRIORITY))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        (await starting).close()
        raise


async def _ended(*tasks: asyncio.Future[None] | asyncio.Future[bool]) -> None:
    """Cancel what has not ended, and wait until it has."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
