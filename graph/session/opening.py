"""What a session opens beside the archive: this machine's engine, and the seed bank."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from ridgeline.checkpoints.bank import Bank, own_bank
from ridgeline.graph.session import machine
from ridgeline.tools.errors import StorageError
from ridgeline.tools.machine.logs import logger_of

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from ridgeline.graph.search.events import SearchEvent
    from ridgeline.graph.session.options import ResolvedSearch
    from ridgeline.tools.engine import Engine

logger = logger_of(__name__)


@contextlib.asynccontextmanager
async def local_engine(
    search: ResolvedSearch, on_event: Callable[[SearchEvent], None] | None, stop: RunControl | None
) -> AsyncIterator[Engine]:
    """Give the engine of this machine, after a warning when others keep the machine busy."""
    from ridgeline.tools.machine.load import busy_words

    opened = machine.open_engine(
        search.device,
        log=search.run_dir / "run.log",
        allow_unsafe=search.allow_unsafe,
        on_wait=machine.on_wait(on_event),
        is_stopping=is_stopping(stop),
    )
    async with opened as engine:
        if on_event is not None and (words := await asyncio.to_thread(busy_words, search.target.device)):
            on_event({"event": "warning", "message": words})
        yield engine


def is_stopping(stop: RunControl | None) -> Callable[[], bool]:
    """Return what says whether a stop was asked for."""
    return lambda: stop is not None and stop.drain_requested


def open_bank(search: ResolvedSearch, stack: contextlib.AsyncExitStack) -> Bank | None:
    """Return the seed bank; None when the search has none, or when the user's own bank cannot be opened or is damaged."""
    if search.bank is None:
        return None
    try:
        with contextlib.ExitStack() as opened:
            bank = opened.enter_context(Bank.open(search.bank))
            bank.check()
            stack.push(opened.pop_all())
    except StorageError as error:
        if search.bank != own_bank():
            raise
        logger.warning("going on without the seed bank: %s", error)
        return None
    return bank
