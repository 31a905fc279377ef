"""Replies that come later, from a mailbox or a batch: waited for alive, or left to the graph, whose host or session waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ridgeline.graph.models.prices import is_batch
from ridgeline.tools.errors import NotBegun
from ridgeline.tools.machine.threads import run_whole

if TYPE_CHECKING:
    from ridgeline.checkpoints.calls.journal import Journal
    from ridgeline.graph.models.allowance import Allowance
    from ridgeline.graph.models.batch.batches import Batches
    from ridgeline.graph.models.mailbox.mailbox import Mailbox
    from ridgeline.graph.models.waiting_request import WaitingRequest

LOOK_EVERY_S = 0.5
"""A look is one query of the journal and one listing of a folder, for all requests together."""


class ReplyPending(Exception):
    """A reply has not come, and nobody waits for it in this process; the graph goes on without its branch."""

    def __init__(self, request: WaitingRequest) -> None:
        super().__init__(request.id)
        self.request = request


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The way in which a search waits for a pending reply."""

    is_deferred: bool = False  # one of a mailbox is the graph's interrupt; else it is waited for alive
    is_parking: bool = False  # so is one of a batch, which no host could answer: the session ends once all else is done
    tell: Callable[[Sequence[WaitingRequest]], None] = lambda _: None  # gets what is waited for alive when that changes


ALIVE = Waiting()


@dataclass(slots=True, kw_only=True)
class LaterReplies:
    """The replies that a search waits for.

    All that wait are looked for by one task, which lives while any does.
    """

    mailbox: Mailbox
    batches: Batches
    journal: Journal
    allowance: Allowance
    waiting: Waiting = ALIVE
    is_stopping: Callable[[], bool]
    is_busy: Callable[[], bool]  # the search works beside the requests that wait
    waited_s: float = 0.0  # of the time in which nothing was done but wait for a mailbox
    _futures: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    _requests: dict[str, WaitingRequest] = field(default_factory=dict)  # of the futures
    _looking: asyncio.Task[None] | None = None
    _told: tuple[str, ...] = ()

    async def reply(self, request: WaitingRequest) -> dict[str, Any] | None:
        """Return the stored reply once somebody has answered; None when the call waits no more and has none.

        Raises:
            ReplyPending: nobody has, and replies are deferred.
            NotBegun: a stop was asked for meanwhile; the request waits on.
        """
        if self.waiting.is_deferred:
            await run_whole(self.mailbox.take_up)
        else:
            await self._answered(request)
        stored = await run_whole(self.journal.stored, request.id)
        if stored is None and self.waiting.is_deferred:
            raise ReplyPending(request)
        return stored

    async def arrived(self, request: WaitingRequest) -> None:
        """Return once the answer of a call in a batch is kept.

        Raises:
            ReplyPending, NotBegun: as `reply` does.
            OutOfBudget: the search's time is over, and the call waits on; or the call does not fit, and was not sent.
            ModelError, ModelUnavailable: as the provider's client does.
        """
        if self.waiting.is_parking:
            raise ReplyPending(request)
        async with self.allowance.deadline():
            await self._answered(request)
        self.batches.raise_ended(request.id)

    async def take_up(self, *, at_once: bool) -> bool:
        """Take up what has come, and send what waits for a batch; say whether a mailbox's file is still being written."""
        if at_once:
            await self.batches.look(is_quiet=True, at_once=True)
        return (await run_whole(self.mailbox.take_up)).is_unsettled

    @property
    def awaits_batches(self) -> bool:
        """Say whether a call of this session waits in a batch."""
        return any(is_batch(request.model) for request in self._requests.values())

    async def _answered(self, request: WaitingRequest) -> None:
        call_id = request.id
        future = self._futures.setdefault(call_id, asyncio.get_running_loop().create_future())
        self._requests[call_id] = request
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_until_none_waits())
        looking = self._looking
        try:
            await asyncio.wait((future, looking), return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                looking.result()  # raises what ended it
            future.result()
        finally:
            self._futures.pop(call_id, None)
            self._requests.pop(call_id, None)
            if not self._futures:
                looking.cancel()  # its search may be over, and the journal closed
                self._looking = None

    async def _look_until_none_waits(self) -> None:
        at_batches: asyncio.Task[None] | None = None  # apart: a provider may take a minute to answer
        try:
            while self._futures:
                was_busy, began = self.is_busy() or self.awaits_batches, time.monotonic()
                await asyncio.sleep(LOOK_EVERY_S)
                is_busy = self.is_busy()
                if not (was_busy or is_busy):
                    self.waited_s += time.monotonic() - began
                if at_batches is not None and at_batches.done():
                    at_batches.result()  # raises what ended the look
                    at_batches = None
                if at_batches is None and self.awaits_batches:
                    at_batches = asyncio.create_task(self.batches.look(is_quiet=not is_busy))
                await self._look()
            self._tell(())
        except asyncio.CancelledError:
            self._tell(())
            raise
        finally:
            if at_batches is not None:
                at_batches.cancel()
                await asyncio.gather(at_batches, return_exceptions=True)

    async def _look(self) -> None:
        if self.is_stopping():
            raise NotBegun("a stop was asked for while replies were waited for")
        waiting = await run_whole(self._wait_still)
        self._tell(tuple(call_id for call_id in self._futures if call_id in waiting))
        for call_id, future in list(self._futures.items()):
            if call_id not in waiting and not future.done():
                future.set_result(None)

    def _wait_still(self) -> set[str]:
        self.mailbox.take_up()
        return set(self.journal.ids("waiting"))

    def _tell(self, ids: tuple[str, ...]) -> None:
        if ids != self._told:
            self.waiting.tell([self._requests[call_id] for call_id in ids])
        self._told = ids
