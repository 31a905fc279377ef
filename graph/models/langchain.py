"""A LangChain chat model as a KernelModel: renders a request's prompt, returns the reply's text and usage."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any

from ridgeline.graph.models.answers import (
    advice_without_text,
    call_tokens,
    finish_reason,
    is_truncated,
    paid,
    paid_unread,
    refusal_of,
    text_of,
    usage_of,
)
from ridgeline.graph.models.call_in_hand import IN_HAND, CallInHand
from ridgeline.graph.models.failures import ModelUnavailable, NoText, ReplyTooLong
from ridgeline.graph.models.hidden_keys import without_keys
from ridgeline.graph.models.prices import Tariff
from ridgeline.graph.models.prompts import render, render_ideation, render_kernel, render_request
from ridgeline.graph.models.replies import wire_schema
from ridgeline.graph.models.requests import IdeaList, IdeationRequest, KernelDraft, KernelRequest, Reply, Usage
from ridgeline.graph.models.retry import RetryPolicy, is_provider_error, is_unread, status_of, with_retries
from ridgeline.tools.errors import RidgelineError
from ridgeline.tools.machine.logs import logger_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from ridgeline.graph.models.pacer import Pacer
    from ridgeline.graph.models.prices import Price

logger = logger_of(__name__)

Schema = type[IdeaList | KernelDraft]


class LangChainModel:
    """Any LangChain chat model; asks for structured output, and for plain text once a server refuses that."""

    def __init__(
        self,
        name: str,
        chat: BaseChatModel,
        *,
        price: Price | None,
        policy: RetryPolicy,
        pacer: Pacer | None = None,
        states_schema: bool = False,
    ) -> None:
        """Wrap `chat`, whose own retries must be off; models of one provider share its `pacer`.

        With `states_schema` the schema goes into the request's body as it is: on chat completions langchain-openai parses
        structured output itself, and raises for a reply that is cut off or filtered, without its text.

        The keys that `chat` holds are hidden in replies and errors.
        """
        self._name = name
        self._chat = chat
        self._policy = policy
        self._pacer = pacer
        self._states_schema = states_schema
        self._structured = True
        self._keys = keys_of(chat)
        self._tariff = Tariff(price=price, max_output_tokens=policy.max_output_tokens)

    @property
    def name(self) -> str:
        """Return "provider:model", as the user wrote it."""
        return self._name

    @property
    def tariff(self) -> Tariff:
        """Return what is known of a call's cost before it is sent."""
        return self._tariff

    async def propose(self, request: IdeationRequest) -> Reply:
        """Ask for ideas."""
        return await self._ask(render_ideation(request), IdeaList, request.partial)

    async def write(self, request: KernelRequest) -> Reply:
        """Ask for a kernel."""
        return await self._ask(render_kernel(request), KernelDraft, request.partial)

    async def _ask(self, prompt: str, schema: Schema, partial: str) -> Reply:
        started, sent = time.monotonic(), f"{prompt}{partial}"
        unread: list[Exception] = []

        async def attempt() -> Any:
            try:
                return await self._invoke(prompt, schema, partial)
            except Exception as error:
                if is_unread(error):
                    unread.append(error)
                    if call := IN_HAND.get():
                        call.unread = self._priced(
                            paid_unread(Usage(), len(unread), sent=sent), time.monotonic() - started
                        )
                raise

        try:
            message = await with_retries(self._name, attempt, self._policy, self._pacer)
            text, usage = self._read(message, sent)
        except RidgelineError as error:
            error.args = tuple(without_keys(each, self._keys) if isinstance(each, str) else each for each in error.args)
            if isinstance(error, ModelUnavailable):
                is_counted = error.__cause__ in unread
                usage = paid(error.usage, sent=sent) if error.is_answered and not is_counted else error.usage
                error.usage = self._priced(paid_unread(usage, len(unread), sent=sent), time.monotonic() - started)
            raise
        usage = self._priced(paid_unread(usage, len(unread), sent=sent), time.monotonic() - started)
        raw = {"model": message.response_metadata.get("model_name", ""), "finish_reason": finish_reason(message)}
        return Reply(text=text, usage=usage, raw=raw, is_truncated=is_truncated(message))

    async def held_back(self, request: IdeationRequest | KernelRequest) -> tuple[str, dict[str, Any]]:
        """Return the path and the JSON body of the HTTP request that asks for this; nothing is sent."""
        made: list[tuple[str, dict[str, Any]]] = []
        prompt, schema = render_request(request), IdeaList if isinstance(request, IdeationRequest) else KernelDraft
        token = IN_HAND.set(CallInHand(keep=_keep_none, hold=lambda path, body: made.append((path, json.loads(body)))))
        try:
            await self._invoke(prompt, schema, request.partial)
        except Exception:  # a client wraps HeldBack in an error of its own
            if not made:
                raise
        finally:
            IN_HAND.reset(token)
        return made[0]

    def _priced(self, usage: Usage, latency_s: float) -> Usage:
        return dataclasses.replace(usage, usd=self._tariff.usd(usage) if usage.tokens else 0.0, latency_s=latency_s)

    async def _invoke(self, prompt: str, schema: Schema, partial: str) -> Any:
        if partial:
            return await self._chat.ainvoke(_continuation(prompt, partial))
        if self._structured:
            try:
                return await self._invoke_structured(prompt, schema)
            except Exception as error:
                if not _means_no_structured_output(error):
                    raise
                logger.warning("%s has no structured output: asking for plain text from now on", self._name)
                self._structured = False
        return await self._chat.ainvoke(prompt)

    async def _invoke_structured(self, prompt: str, schema: Schema) -> Any:
        wanted = wire_schema(schema)
        if self._states_schema:
            stated = {"name": wanted["title"], "schema": wanted, "strict": True}
            body = {"response_format": {"type": "json_schema", "json_schema": stated}}
            return await self._chat.bind(extra_body=body).ainvoke(prompt)
        structured = self._chat.with_structured_output(wanted, method="json_schema", include_raw=True)
        answer: Any = await structured.ainvoke(prompt)
        return answer["raw"]

    def _read(self, message: Any, sent: str) -> tuple[str, Usage]:
        """Return a reply's text and its tokens, which are known whatever it holds.

        Raises:
            NoText, ReplyTooLong: the reply holds no text, or too much of it.
        """
        text = without_keys(text_of(message), self._keys)
        usage = call_tokens(usage_of(message), sent=sent, text=text[: self._policy.max_reply_chars])
        if len(text) > self._policy.max_reply_chars:
            error = ReplyTooLong(self._policy.max_reply_chars, received_chars=len(text))
            error.usage = usage
            raise error
        if not text.strip():
            reason = refusal_of(message) or finish_reason(message)
            raise NoText(
                f"{self._name} answered with nothing ({reason[:300]})", usage, advice=advice_without_text(message)
            )
        return text, usage


def keys_of(chat: BaseChatModel) -> tuple[str, ...]:
    """Return the keys that a client of LangChain holds."""
    from pydantic import SecretStr

    held = (value for value in vars(chat).values() if isinstance(value, SecretStr))
    return tuple(value.get_secret_value() for value in held)


async def _keep_none(body: bytes) -> None:
    """Keep no answer: none comes."""


def _continuation(prompt: str, partial: str) -> list[Any]:
    """Return the messages that ask for the rest of an answer; without a schema, which would begin a new object."""
    from langchain_core.messages import AIMessage, HumanMessage

    return [HumanMessage(prompt), AIMessage(partial), HumanMessage(render("continue.md.j2"))]


def _means_no_structured_output(error: Exception) -> bool:
    if isinstance(error, NotImplementedError):
        return True
    words = str(error).lower()
    return is_provider_error(error) and status_of(error) in (400, 422) and ("schema" in words or "format" in words)
