"""Models behind the journal: a reply that arrived once is never paid for again."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, TypeVar

from ridgeline.checkpoints.calls.kept_texts import KeptTexts
from ridgeline.graph.models.allowance import Allowance, purpose_of
from ridgeline.graph.models.batch.batches import Batches
from ridgeline.graph.models.batch.model import BatchModel
from ridgeline.graph.models.call_in_hand import IN_HAND, CallInHand
from ridgeline.graph.models.continuation import joined
from ridgeline.graph.models.edits import holds_edits
from ridgeline.graph.models.failures import ModelUnavailable, NoText
from ridgeline.graph.models.later_replies import LaterReplies
from ridgeline.graph.models.mailbox.mailbox import Mailbox
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.models.mailbox.request import seconds_since
from ridgeline.graph.models.pool import tariff_of
from ridgeline.graph.models.prompts import render_request
from ridgeline.graph.models.registry import OFFLINE, is_metered
from ridgeline.graph.models.replayed_model import ReplayedModel
from ridgeline.graph.models.replies import UnmatchedEdits, UnreadableReply, read_ideas, read_kernel
from ridgeline.graph.models.requests import (
    IdeaDraft,
    IdeationRequest,
    KernelDraft,
    KernelRequest,
    Reply,
    Usage,
    own_part,
)
from ridgeline.graph.models.retry import unreadable
from ridgeline.graph.models.second_ask import advice_given, advice_of, kernel_again
from ridgeline.tools.errors import OutOfBudget, RidgelineError, RunError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.keys import again_id, part_id
from ridgeline.tools.records.printable import encodable
from ridgeline.tools.threads import run_whole

if TYPE_CHECKING:
    from ridgeline.checkpoints.calls.journal import Journal
    from ridgeline.graph.models.pool import ModelPool
    from ridgeline.graph.models.requests import KernelModel

logger = logger_of(__name__)

CALLS_AT_ONCE = 16
"""Model calls in flight in one search; providers answer more with 429."""

MOST_PARTS = 3
"""Calls that one answer may be spread over, each cut off at its limit of length, before it is asked for anew."""

BE_BRIEF = "it was cut off at its limit of length; give a shorter one"

T = TypeVar("T")


class JournalledModels:
    """The models of one search, asked through its journal.

    A call has an id that is the same on every resume. The journal records a call before the request is sent, and the
    reply or the failure before anything uses it.
    """

    def __init__(
        self,
        pool: ModelPool,
        journal: Journal,
        allowance: Allowance | None = None,
        *,
        later: LaterReplies | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`later` waits for the replies of mailboxes and batches; without it one that waits alive."""
        self._pool = pool
        self._journal = journal
        self._texts = KeptTexts(journal.archive)
        self.allowance = allowance or Allowance(journal)
        self.later = later or LaterReplies(
            mailbox=Mailbox(journal),
            batches=Batches(journal, self.allowance, pool.find),
            journal=journal,
            allowance=self.allowance,
        )
        self._is_stopping = is_stopping
        self.sending = 0  # calls in flight
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    # ------------------------------------------------------------------------------------------------- what is asked

    async def propose(self, call_id: str, model_name: str, request: IdeationRequest) -> list[IdeaDraft]:
        """Return at most `request.count` ideas; a reply that cannot be used is asked for once more.

        After a second unreadable reply there are none.

        Raises:
            ModelError: the provider refuses this key or model.
            ModelUnavailable: the model gave no answer, or two without a text.
            OutOfBudget: the budget does not allow the call; nothing is lost.
        """

        def read(text: str) -> list[IdeaDraft]:
            return read_ideas(text, are_composed=model_name == OFFLINE)[: request.count]

        try:
            return await self._read(call_id, model_name, request, read)
        except (UnreadableReply, NoText) as error:
            logger.warning("%s: no usable reply of %s: %s", call_id, model_name, error)
            again = dataclasses.replace(request, unreadable=advice_of(error))
        try:
            return await self._read(again_id(call_id), model_name, again, read)
        except UnreadableReply as error:
            logger.warning("%s: unreadable again: %s", call_id, error)
            return []

    async def write(self, call_id: str, model_name: str, request: KernelRequest) -> KernelDraft:
        """Return the kernel that a model writes; a reply that cannot be used is asked for once more.

        Raises:
            ModelError, ModelUnavailable, OutOfBudget: as `propose` does.
            UnreadableReply: the second reply is unreadable too.
        """

        def read(text: str) -> KernelDraft:
            return read_kernel(text, request.bases)

        try:
            return await self._read(call_id, model_name, request, read)
        except (UnreadableReply, NoText) as error:
            logger.warning("%s: no usable reply of %s: %s", call_id, model_name, error)
            again = kernel_again(request, error)
        return await self._read(again_id(call_id), model_name, again, read)

    async def _read(
        self, call_id: str, model_name: str, request: IdeationRequest | KernelRequest, read: Callable[[str], T]
    ) -> T:
        """Return what `read` makes of a reply; the rest of one that was cut off is asked for.

        Raises:
            UnreadableReply: with the reply's text.
        """
        reply = await self._reply(call_id, model_name, request)
        for part in range(2, MOST_PARTS + 2):
            try:
                if reply.is_truncated and holds_edits(reply.text):
                    raise UnmatchedEdits(BE_BRIEF)  # blocks that came whole are not all of them
                return read(reply.text)
            except UnreadableReply as error:
                if not reply.is_truncated:
                    error.text = reply.text
                    raise
                if part > MOST_PARTS:
                    break
            further = part_id(call_id, part)
            if await run_whole(advice_given, self._journal, further, again_id(call_id)):
                break
            try:
                rest = await self._reply(further, model_name, dataclasses.replace(request, partial=reply.text))
            except ModelUnavailable as error:  # a provider that takes no conversation, or goes on with nothing
                logger.warning("%s: %s did not go on: %s", call_id, model_name, error)
                break
            reply = dataclasses.replace(rest, text=joined(reply.text, rest.text))
        raise UnreadableReply(BE_BRIEF)

    # -------------------------------------------------------------------------------------------------- how it is sent

    async def _reply(self, call_id: str, model_name: str, request: IdeationRequest | KernelRequest) -> Reply:
        """Return the reply of this call, from the journal when the reply arrived before."""
        prompt = await run_whole(render_request, request)
        prompt_sha256 = hashlib.sha256(prompt.encode()).hexdigest()
        stored = await run_whole(self._journal.stored, call_id, prompt_sha256)
        if stored is not None:
            return _from_journal(stored)
        if advice := await run_whole(advice_given, self._journal, call_id, again_id(call_id)):
            raise NoText(f"{call_id} had no text, and was asked once more", advice=advice)
        model = self._pool.model(model_name)
        if isinstance(model, ReplayedModel):
            model = model.answering(call_id, request)
        if isinstance(model, LaterModel):
            return await self._later_reply(call_id, model, request, prompt=prompt, sha256=prompt_sha256)
        kept = await run_whole(self._texts.unread_answer, call_id)
        if isinstance(model, BatchModel):
            kept = kept or await self._batched_answer(call_id, model, request, prompt=prompt, sha256=prompt_sha256)
            return await self._answer(call_id, model.chat, request, kept, has_waited=True)
        if kept:
            logger.info("%s: its answer arrived in an earlier session", call_id)
            return await self._answer(call_id, model, request, kept)
        async with self._slots, self._room(model, request, prompt):
            await run_whole(self._texts.keep_prompt, prompt_sha256, prompt)
            await run_whole(
                self._journal.begin,
                call_id,
                model=model.name,
                prompt_sha256=prompt_sha256,
                request=own_part(request),
            )
            reply = await self._answer(call_id, model, request)
        logger.info("%s: %s answered in %.1f s", call_id, model.name, reply.usage.latency_s)
        return reply

    async def _later_reply(
        self,
        call_id: str,
        model: LaterModel,
        request: IdeationRequest | KernelRequest,
        *,
        prompt: str,
        sha256: str,
    ) -> Reply:
        """Put a call into the mailbox and return its reply; a call that waits takes no slot of those in flight.

        It reserves no room in the budget and has no deadline: what an answer uses it states itself.
        """
        post = self.later.mailbox.post
        waiting = await run_whole(post, call_id, model, request, prompt=prompt, sha256=sha256)
        stored = await (self.later.reply(waiting) if waiting else run_whole(self._journal.stored, call_id))
        if stored is None:
            raise RunError(f"{self.later.mailbox.path}: {call_id} waits no more, and has no answer")
        return _from_journal(stored)

    async def _batched_answer(
        self,
        call_id: str,
        model: BatchModel,
        request: IdeationRequest | KernelRequest,
        *,
        prompt: str,
        sha256: str,
    ) -> bytes:
        """Put a call among those that go into a batch, and return its answer as it arrived."""
        post = self.later.batches.post
        await self.later.arrived(await run_whole(post, call_id, model, request, prompt=prompt, sha256=sha256))
        kept = await run_whole(self._texts.unread_answer, call_id)
        if kept is None:
            raise RunError(f"{self._journal.path}: {call_id} waits no more, and has no answer")
        return kept

    @contextlib.asynccontextmanager
    async def _room(
        self, model: KernelModel, request: IdeationRequest | KernelRequest, prompt: str
    ) -> AsyncIterator[None]:
        """Hold what a call may use of the budget, unless the model uses none."""
        if not is_metered(model.name):
            yield
            return
        sent = f"{prompt}{request.partial}"
        async with self.allowance.reserved(model.name, tariff_of(model), purpose_of(request), sent):
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
            left_s=self.allowance.left_s,
            is_stopping=self._is_stopping,
        )
        token = IN_HAND.set(call)
        self.sending += 1
        try:
            async with self.allowance.deadline() if kept is None else contextlib.nullcontext():
                reply = await self._send(model, request)
        except RidgelineError as error:
            usage = error.usage.to_json() if isinstance(error, ModelUnavailable) else None
            await run_whole(self._journal.fail, call_id, str(error), usage)
            if isinstance(error, OutOfBudget):
                self.allowance.end(str(error))
            raise
        finally:
            self.sending -= 1
            IN_HAND.reset(token)
        if has_waited and (begun := await run_whole(self._journal.call, call_id)):
            waited = dataclasses.replace(reply.usage, latency_s=seconds_since(begun["began_at"]))
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


def _to_journal(reply: Reply) -> dict[str, object]:
    return {"text": reply.text, "raw": reply.raw, "is_truncated": reply.is_truncated, **reply.usage.to_json()}


def _from_journal(stored: dict[str, object]) -> Reply:
    raw = stored.get("raw")
    return Reply(
        text=str(stored["text"]),
        usage=Usage.from_json(stored),
        raw=raw if isinstance(raw, dict) else {},
        is_truncated=bool(stored.get("is_truncated")),
    )
