"""Work in a thread that ends before its task does, a cancelled one too: nothing is closed while the thread uses it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def run_whole(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function gives that runs in a thread; a cancellation is raised once the function has ended.

    `asyncio.to_thread` leaves the thread alone then, with an archive that is closed under it. A future stands for the work,
    since a task of its own would be cancelled too where every task of a loop is.
    """
    called = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
    working = asyncio.get_running_loop().run_in_executor(None, called)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            with contextlib.suppress(asyncio.CancelledError):  # a further one changes nothing
                await asyncio.wait({working})
        if not working.cancelled():
            working.exception()  # looked at, so that nobody misses it
        raise
