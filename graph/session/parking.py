"""A search whose branches all wait for answers that come later: what is left to do, and whether it goes on at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ridgeline.checkpoints.storage.own_files import MAILBOX
from ridgeline.graph.models.mailbox.folder import SETTLED_S
from ridgeline.graph.models.prices import is_batch
from ridgeline.graph.search.events import telling
from ridgeline.tools.machine.threads import run_whole

if TYPE_CHECKING:
    from pathlib import Path

    from ridgeline.graph.models.later_replies import LaterReplies
    from ridgeline.graph.models.waiting_request import WaitingRequest
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.events import OnEvent

SETTLING_LOOKS = 6
"""Looks at a mailbox's folder, half of SETTLED_S apart, in which a file that is being written may become whole."""


async def settle_waiting(context: SearchContext, asked: Sequence[str], on_event: OnEvent) -> set[str]:
    """Do what is left to do while these requests wait, and return those that have their answers then.

    PyTorch's compiled configurations are timed, batches sent and looked for, and the mailbox's answers taken up.

    Raises:
        NotBegun: a stop was asked for while PyTorch was timed.
        ModelError: a batch's provider refuses this key or model.
    """
    from ridgeline.graph.search.judging.compiled import finish_compiled

    # a batch is under way while PyTorch is timed
    await context.later.batches.look(is_quiet=True, at_once=True)
    with telling(on_event):  # no node runs, whose stream would take events
        await finish_compiled(context)
    await take_up(context.later)
    return set(asked) - set(await run_whole(context.journal.ids, "waiting"))


async def take_up(later: LaterReplies) -> None:
    """Take up the answers in the mailbox's folder and at providers; a file that is being written is waited for a moment."""
    for looks in range(SETTLING_LOOKS):
        if not await later.take_up(at_once=looks == 0):
            return
        await asyncio.sleep(SETTLED_S / 2)


def on_requests(run_dir: Path, on_event: OnEvent) -> Callable[[Sequence[WaitingRequest]], None]:
    """Return what tells the viewers of the requests that wait in the run's mailbox, and in batches."""
    folder = str(run_dir / MAILBOX)
    told: dict[str, list[str]] = {"mailbox": [], "batch": []}

    def tell(requests: Sequence[WaitingRequest]) -> None:
        batched = [request.id for request in requests if is_batch(request.model)]
        mailed = [request.id for request in requests if request.id not in batched]
        if batched != told["batch"]:
            on_event({"event": "batch", "waiting": batched})
        if mailed != told["mailbox"]:
            on_event({"event": "mailbox", "waiting": mailed, "folder": folder})
        told.update(batch=batched, mailbox=mailed)

    return tell
