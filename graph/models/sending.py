"""The calls of one search on their way: each sent as its model takes it, and stored before anything reads the reply."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from ridgeline.checkpoints.calls.kept_texts import KeptTexts
from ridgeline.graph.models.allowance import purpose_of
from ridgeline.graph.models.call_in_hand import IN_HAND, CallInHand
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.prices import Tariff
from ridgeline.graph.models.requests import IdeationRequest, KernelModel, KernelRequest, Reply, Usage, own_part
from ridgeline.graph.models.retry import unreadable
from ridgeline.graph.models.waiting_request import seconds_since
from ridgeline.tools.errors import OutOfBudget, RidgelineError, RunError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.printable import encodable

if TYPE_CHECKING:
    from ridgeline.checkpoints.calls.journal import Journal
    from ridgeline.graph.models.allowance import Allowance
    from ridgeline.graph.models.batch.model import BatchModel
    from ridgeline.graph.models.later_replies import LaterReplies
    from ridgeline.graph.models.search_model import AnsweringModel, ModelCall, PostedModel

logger = logger_of(__name__)

CALLS_AT_ONCE = 16
"""Model calls in flight in one search; providers answer more with 429."""


class CallSender:
    """Sends the calls of one search and stores how each ended; a model says which way its calls take."""

    def __init__(
        self, journal: Journal, allowance: Allowance, later: LaterReplies, *, is_stopping: Callable[[], bool]
    ) -> None:
        """`later` waits for the replies of mailboxes and batches."""
        self._journal = journal
        self._texts = KeptTexts(journal.archive)
        self._allowance = allowance
        self._later = later
        self._is_stopping = is_stopping
        self.in_flight = 0
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def at_once(self, call: ModelCall, model: AnsweringModel) -> Reply:
        """Return the reply of a model that answers when it is asked."""
        kept = await run_whole(self._texts.unread_answer, call.id)
        if kept:
            logger.info("%s: its answer arrived in an earlier session", call.id)
            return await self._answer(call.id, model, call.request, kept)
        async with self._slots, self._room(call, model):
            await run_whole(self._texts.keep_prompt, call.sha256, call.prompt)
            await run_whole(
                self._journal.begin,
                call.id,
                model=model.name,
                prompt_sha256=call.sha256,
                request=own_part(call.request),
            )
            reply = await self._answer(call.id, model, call.request)
        logger.info("%s: %s answered in %.1f s", call.id, model.name, reply.usage.latency_s)
        return reply

    async def by_mailbox(self, call: ModelCall, model: PostedModel) -> Reply:
        """Put a call into the mailbox and return its reply; a call that waits takes no slot of those in flight.

        It reserves no room in the budget and has no deadline: what an answer uses it states itself.
        """
        post = self._later.mailbox.post
        waiting = await run_whole(post, call.id, model, call.request, prompt=call.prompt, sha256=call.sha256)
        stored = await (self._later.reply(waiting) if waiting else run_whole(self._journal.stored, call.id))
        if stored is None:
            raise RunError(f"{self._later.mailbox.path}: {call.id} waits no more, and has no answer")
        return reply_of(stored)

    async def by_batch(self, call: ModelCall, model: BatchModel) -> Reply:
        """Put a call among those that go into a batch, and return its reply."""
        kept = await run_whole(self._texts.unread_answer, call.id) or await self._batched_answer(call, model)
        return await self._answer(call.id, model.chat, call.request, kept, has_waited=True)

    async def _batched_answer(self, call: ModelCall, model: BatchModel) -> bytes:
        """Let a call wait for its batch, and return its answer as it arrived."""
        post = self._later.batches.post
        posted = await run_whole(post, call.id, model, call.request, prompt=call.prompt, sha256=call.sha256)
        await self._later.arrived(posted)
        kept = await run_whole(self._texts.unread_answer, call.id)
        if kept is None:
            raise RunError(f"{self._journal.path}: {call.id} waits no more, and has no answer")
        return kept

    @contextlib.asynccontextmanager
    async def _room(self, call: ModelCall, model: AnsweringModel) -> AsyncIterator[None]:
        """Hold what a call may use of the budget, unless the model uses none."""
        if not model.traits.is_metered:
            yield
            return
        sent = f"{call.prompt}{call.request.partial}"
        tariff = model.tariff or Tariff()
        async with self._allowance.reserved(model.name, tariff, purpose_of(call.request), sent):
            yield

    async def _answer(
        self,
        call_id: str,
        model: KernelModel,
        request: IdeationRequest | KernelRequest,
        kept: bytes | None = None,
        *,
        has_waited: bool = False,
    ) -> Reply:
        """Send a call that the journal holds as begun, or read its `kept` answer, and store how the call ended.

        The latency of one that `has_waited` is the time since it was asked.
        """
        call = CallInHand(
            call_id=call_id,
            keep=lambda body: run_whole(self._texts.keep_answer, call_id, body),
            kept=kept,
            left_s=self._allowance.left_s,
            is_stopping=self._is_stopping,
        )
        token = IN_HAND.set(call)
        self.in_flight += 1
        try:
            async with self._allowance.deadline() if kept is None else contextlib.nullcontext():
                reply = await self._send(model, request)
        except RidgelineError as error:
            used = error.usage if isinstance(error, ModelUnavailable) else call.unread
            await run_whole(self._journal.fail, call_id, str(error), used.to_json() if used else None)
            if isinstance(error, OutOfBudget):
                self._allowance.end(str(error))
            raise
        finally:
            self.in_flight -= 1
            IN_HAND.reset(token)
        if has_waited and (begun := await run_whole(self._journal.call, call_id)):
            waited = dataclasses.replace(reply.usage, latency_s=seconds_since(begun.began_at))
            reply = dataclasses.replace(reply, usage=waited)
        await run_whole(self._journal.finish, call_id, _to_journal(reply))
        return reply

    async def _send(self, model: KernelModel, request: IdeationRequest | KernelRequest) -> Reply:
        """Return the model's reply, as it can be stored; ModelUnavailable for every exception that is not Ridgeline's."""
        try:
            reply = await (model.propose(request) if isinstance(request, IdeationRequest) else model.write(request))
        except RidgelineError as error:
            error.args = tuple(encodable(each) if isinstance(each, str) else each for each in error.args)
            raise
        except Exception as error:
            # A model is a user's or a provider's code and may raise anything: one failed call must not end the search.
            logger.exception("%s raised", model.name)
            raise unreadable(model.name, error) from error
        raw = {name: encodable(each) if isinstance(each, str) else each for name, each in reply.raw.items()}
        return dataclasses.replace(reply, text=encodable(reply.text), raw=raw)


def reply_of(stored: dict[str, object]) -> Reply:
    """Return a reply as the journal stores it."""
    raw = stored.get("raw")
    return Reply(
        text=str(stored["text"]),
        usage=Usage.from_json(stored),
        raw=raw if isinstance(raw, dict) else {},
        is_truncated=bool(stored.get("is_truncated")),
    )


def _to_journal(reply: Reply) -> dict[str, object]:
    return {"text": reply.text, "raw": reply.raw, "is_truncated": reply.is_truncated, **reply.usage.to_json()}
