"""Models behind the journal: a reply that arrived once is never paid for again."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ridgeline.graph.models.continuation import joined
from ridgeline.graph.models.edits import holds_edits
from ridgeline.graph.models.failures import ModelUnavailable, NoText
from ridgeline.graph.models.prompts import render_request
from ridgeline.graph.models.replies import UnmatchedEdits, UnreadableReply, read_ideas, read_kernel
from ridgeline.graph.models.requests import (
    IdeaDraft,
    IdeationRequest,
    KernelDraft,
    KernelRequest,
    Reply,
)
from ridgeline.graph.models.search_model import ModelCall
from ridgeline.graph.models.second_ask import advice_given, advice_of, kernel_again
from ridgeline.graph.models.sending import reply_of
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.keys import again_id, part_id

if TYPE_CHECKING:
    from ridgeline.checkpoints.calls.journal import Journal
    from ridgeline.graph.models.pool import ModelPool
    from ridgeline.graph.models.sending import CallSender

logger = logger_of(__name__)

MOST_PARTS = 3
"""Calls that one answer may be spread over, each cut off at its limit of length, before it is asked for anew."""

BE_BRIEF = "it was cut off at its limit of length; give a shorter one"

T = TypeVar("T")


class JournalledModels:
    """The models of one search, asked through its journal.

    A call has an id that is the same on every resume. The journal records a call before the request is sent, and the
    reply or the failure before anything uses it.
    """

    def __init__(self, pool: ModelPool, journal: Journal, sender: CallSender) -> None:
        self._pool = pool
        self._journal = journal
        self._sender = sender

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
            return read_ideas(text, are_composed=self._pool.traits(model_name).composes)[: request.count]

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
            return reply_of(stored)
        if advice := await run_whole(advice_given, self._journal, call_id, again_id(call_id)):
            raise NoText(f"{call_id} had no text, and was asked once more", advice=advice)
        call = ModelCall(id=call_id, request=request, prompt=prompt, sha256=prompt_sha256)
        return await self._pool.model(model_name).deliver(call, self._sender)
