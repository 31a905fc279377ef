"""Ask a model through the journal: a reply that arrived once is never paid for again."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
from typing import TYPE_CHECKING

from ridgeline.graph.models.prompts import render_request
from ridgeline.graph.models.replies import UnreadableReply, read_ideas, read_kernel
from ridgeline.graph.models.requests import IdeaDraft, IdeationRequest, KernelDraft, KernelRequest, Reply, Usage
from ridgeline.graph.models.retry import ModelUnavailable, unreadable
from ridgeline.tools.errors import RidgelineError

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext

logger = logging.getLogger(__name__)

REPLY_SHOWN = 20_000
"""Characters of an unreadable reply that go back to the model."""


async def ask(context: SearchContext, call_id: str, model_name: str, request: IdeationRequest | KernelRequest) -> Reply:
    """Return the reply of this call, from the journal when it arrived before.

    The call is recorded before it is sent, and its reply or its failure before anything uses it.

    Raises:
        ModelError: the provider refuses this key or model.
        ModelUnavailable: this call has no usable answer.
    """
    prompt = await asyncio.to_thread(render_request, request)
    prompt_sha256 = hashlib.sha256(prompt.encode()).hexdigest()
    stored = await asyncio.to_thread(context.journal.stored, call_id, prompt_sha256)
    if stored is not None:
        return _from_journal(stored)
    async with context.model_slots:
        summary = _request_summary(request)
        await asyncio.to_thread(
            context.journal.begin, call_id, model=model_name, prompt_sha256=prompt_sha256, request=summary
        )
        try:
            reply = await _send(context, model_name, request)
        except RidgelineError as error:
            usage = error.usage.to_json() if isinstance(error, ModelUnavailable) else None
            await asyncio.to_thread(context.journal.fail, call_id, str(error), usage)
            raise
        await asyncio.to_thread(context.journal.finish, call_id, _to_journal(reply))
    logger.info("%s: %s answered in %.1f s", call_id, model_name, reply.usage.latency_s)
    return reply


async def _send(context: SearchContext, model_name: str, request: IdeationRequest | KernelRequest) -> Reply:
    """Return the model's reply; ModelUnavailable for whatever else it raises."""
    model = context.models.model(model_name)
    try:
        return await (model.propose(request) if isinstance(request, IdeationRequest) else model.write(request))
    except RidgelineError:
        raise
    except Exception as error:
        # a model is the user's or a provider's code and raises what it likes: one call of it does not end a search
        logger.exception("%s raised", model_name)
        raise unreadable(model_name, error) from error


def _request_summary(request: IdeationRequest | KernelRequest) -> dict[str, object]:
    """Return what of a request is worth storing: all but the subject, which is the same for every call."""
    return {k: v for k, v in _json(request).items() if k != "subject"}


def _json(request: IdeationRequest | KernelRequest) -> dict[str, object]:
    data = request.to_json()
    if isinstance(request, KernelRequest):
        data["idea"] = request.idea.model_dump(mode="json")
    return data


def _to_journal(reply: Reply) -> dict[str, object]:
    return {"text": reply.text, "raw": reply.raw, **reply.usage.to_json()}


def _from_journal(stored: dict[str, object]) -> Reply:
    raw = stored.get("raw")
    return Reply(text=str(stored["text"]), usage=Usage.from_json(stored), raw=raw if isinstance(raw, dict) else {})


async def ask_ideas(context: SearchContext, call_id: str, model_name: str, request: IdeationRequest) -> list[IdeaDraft]:
    """Return at most `request.count` ideas; an unreadable reply is asked for once more, then counts as none."""
    for attempt_id in (call_id, f"{call_id}:again"):
        reply = await ask(context, attempt_id, model_name, request)
        try:
            return read_ideas(reply.text)[: request.count]
        except UnreadableReply as error:
            logger.warning("%s: unreadable reply of %s: %s", attempt_id, model_name, error)
            request = dataclasses.replace(request, unreadable=str(error))
    return []


async def ask_kernel(context: SearchContext, call_id: str, model_name: str, request: KernelRequest) -> KernelDraft:
    """Return the kernel a model writes; an unreadable reply is asked for once more.

    Raises UnreadableReply when the second one is no better.
    """
    reply = await ask(context, call_id, model_name, request)
    try:
        return read_kernel(reply.text)
    except UnreadableReply as error:
        logger.warning("%s: unreadable reply of %s: %s", call_id, model_name, error)
        failure = f"Your reply could not be read: {error}."
        request = dataclasses.replace(request, failed_source=reply.text[:REPLY_SHOWN], failure=failure)
    return read_kernel((await ask(context, f"{call_id}:again", model_name, request)).text)
