"""Models behind the journal: a reply that arrived once is never paid for again."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
from typing import TYPE_CHECKING

from ridgeline.graph.models.prompts import render_request
from ridgeline.graph.models.registry import OFFLINE
from ridgeline.graph.models.replies import UnreadableReply, read_ideas, read_kernel
from ridgeline.graph.models.requests import IdeaDraft, IdeationRequest, KernelDraft, KernelRequest, Reply, Usage
from ridgeline.graph.models.retry import ModelUnavailable, unreadable
from ridgeline.tools.errors import RidgelineError
from ridgeline.tools.records.vocabulary import ReasonCode

if TYPE_CHECKING:
    from ridgeline.checkpoints.journal import Journal
    from ridgeline.graph.models.pool import ModelPool

logger = logging.getLogger(__name__)

CALLS_AT_ONCE = 16
"""Model calls in flight in one search; providers answer more with 429."""

REPLY_SHOWN = 20_000
"""Characters of an unreadable reply that go back to the model."""


class JournalledModels:
    """The models of one search, asked through its journal.

    A call has an id that is the same on every resume. The journal records a call before the request is sent, and the
    reply or the failure before anything uses it.
    """

    def __init__(self, pool: ModelPool, journal: Journal) -> None:
        self._pool = pool
        self._journal = journal
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def propose(self, call_id: str, model_name: str, request: IdeationRequest) -> list[IdeaDraft]:
        """Return at most `request.count` ideas; an unreadable reply is asked for once more, then counts as none.

        Raises:
            ModelError: the provider refuses this key or model.
            ModelUnavailable: the model gave no usable answer.
        """
        for attempt_id in (call_id, _second(call_id)):
            reply = await self._reply(attempt_id, model_name, request)
            try:
                return read_ideas(reply.text, are_composed=model_name == OFFLINE)[: request.count]
            except UnreadableReply as error:
                logger.warning("%s: unreadable reply of %s: %s", attempt_id, model_name, error)
                request = dataclasses.replace(request, unreadable=str(error))
        return []

    async def write(self, call_id: str, model_name: str, request: KernelRequest) -> KernelDraft:
        """Return the kernel that a model writes; an unreadable reply is asked for once more.

        Raises:
            ModelError, ModelUnavailable: as `propose` does.
            UnreadableReply: the second reply is unreadable too.
        """
        reply = await self._reply(call_id, model_name, request)
        try:
            return read_kernel(reply.text)
        except UnreadableReply as error:
            logger.warning("%s: unreadable reply of %s: %s", call_id, model_name, error)
            failure = f"Your reply could not be read: {error}."
            request = dataclasses.replace(
                request,
                failed_source=reply.text[:REPLY_SHOWN],
                failure=failure,
                failure_code=ReasonCode.NONE,
            )
        return read_kernel((await self._reply(_second(call_id), model_name, request)).text)

    async def _reply(self, call_id: str, model_name: str, request: IdeationRequest | KernelRequest) -> Reply:
        """Return the reply of this call, from the journal when the reply arrived before."""
        prompt = await asyncio.to_thread(render_request, request)
        prompt_sha256 = hashlib.sha256(prompt.encode()).hexdigest()
        stored = await asyncio.to_thread(self._journal.stored, call_id, prompt_sha256)
        if stored is not None:
            return _from_journal(stored)
        async with self._slots:
            await asyncio.to_thread(
                self._journal.begin,
                call_id,
                model=model_name,
                prompt_sha256=prompt_sha256,
                request=_request_summary(request),
            )
            reply = await self._answer(call_id, model_name, request)
        logger.info("%s: %s answered in %.1f s", call_id, model_name, reply.usage.latency_s)
        return reply

    async def _answer(self, call_id: str, model_name: str, request: IdeationRequest | KernelRequest) -> Reply:
        """Send a call that the journal holds as begun, and store how the call ended."""
        try:
            reply = await self._send(model_name, request)
        except RidgelineError as error:
            usage = error.usage.to_json() if isinstance(error, ModelUnavailable) else None
            await asyncio.to_thread(self._journal.fail, call_id, str(error), usage)
            raise
        await asyncio.to_thread(self._journal.finish, call_id, _to_journal(reply))
        return reply

    async def _send(self, model_name: str, request: IdeationRequest | KernelRequest) -> Reply:
        """Return the model's reply; ModelUnavailable for every exception that is not Ridgeline's."""
        model = self._pool.model(model_name)
        try:
            return await (model.propose(request) if isinstance(request, IdeationRequest) else model.write(request))
        except RidgelineError:
            raise
        except Exception as error:
            # A model is a user's or a provider's code and may raise anything: one failed call must not end the search.
            logger.exception("%s raised", model_name)
            raise unreadable(model_name, error) from error


def _second(call_id: str) -> str:
    """Return the id of the call that repeats one whose reply was unreadable."""
    return f"{call_id}:again"


def _request_summary(request: IdeationRequest | KernelRequest) -> dict[str, object]:
    """Return a request without the problem and PyTorch's times, which are the same for every call of a round."""
    data = request.to_json()
    if isinstance(request, KernelRequest):
        data["idea"] = request.idea.model_dump(mode="json")
    return {key: value for key, value in data.items() if key not in ("subject", "baselines")}


def _to_journal(reply: Reply) -> dict[str, object]:
    return {"text": reply.text, "raw": reply.raw, **reply.usage.to_json()}


def _from_journal(stored: dict[str, object]) -> Reply:
    raw = stored.get("raw")
    return Reply(text=str(stored["text"]), usage=Usage.from_json(stored), raw=raw if isinstance(raw, dict) else {})
