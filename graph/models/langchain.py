"""A LangChain chat model as a KernelModel: renders a request's prompt, returns the reply's text and usage."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

from ridgeline.graph.models.prompts import render_ideation, render_kernel
from ridgeline.graph.models.replies import wire_schema
from ridgeline.graph.models.requests import IdeaList, IdeationRequest, KernelDraft, KernelRequest, Reply, Usage
from ridgeline.graph.models.retry import ModelUnavailable, RetryPolicy, is_provider_error, status_of, with_retries

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from ridgeline.graph.models.prices import Price

logger = logging.getLogger(__name__)


class LangChainModel:
    """Any LangChain chat model; asks for structured output, and for plain text once a server refuses that."""

    def __init__(self, name: str, chat: BaseChatModel, *, price: Price | None, policy: RetryPolicy) -> None:
        """Wrap `chat`, whose own retries must be off; `price` None leaves the cost at zero."""
        self._name = name
        self._chat = chat
        self._price = price
        self._policy = policy
        self._structured = True

    @property
    def name(self) -> str:
        """Return "provider:model", as the user wrote it."""
        return self._name

    async def propose(self, request: IdeationRequest) -> Reply:
        """Ask for ideas."""
        return await self._ask(render_ideation(request), IdeaList)

    async def write(self, request: KernelRequest) -> Reply:
        """Ask for a kernel."""
        return await self._ask(render_kernel(request), KernelDraft)

    async def _ask(self, prompt: str, schema: type[IdeaList | KernelDraft]) -> Reply:
        started = time.monotonic()
        try:
            message = await with_retries(self._name, lambda: self._invoke(prompt, schema), self._policy)
        except ModelUnavailable as error:
            error.usage = self._priced(error.usage.input_tokens, error.usage.output_tokens, time.monotonic() - started)
            raise
        return self._reply(message, time.monotonic() - started)

    def _priced(self, tokens_in: int, tokens_out: int, latency_s: float) -> Usage:
        usd = self._price.usd(tokens_in, tokens_out) if self._price else 0.0
        return Usage(input_tokens=tokens_in, output_tokens=tokens_out, usd=usd, latency_s=latency_s)

    async def _invoke(self, prompt: str, schema: type[IdeaList | KernelDraft]) -> Any:
        if self._structured:
            try:
                structured = self._chat.with_structured_output(
                    wire_schema(schema), method="json_schema", include_raw=True
                )
                answer: Any = await structured.ainvoke(prompt)
                return answer["raw"]
            except Exception as error:
                if not _means_no_structured_output(error):
                    raise
                logger.warning("%s has no structured output: asking for plain text from now on", self._name)
                self._structured = False
        return await self._chat.ainvoke(prompt)

    def _reply(self, message: Any, latency_s: float) -> Reply:
        text = _text_of(message)
        counts = message.usage_metadata or {}
        usage = self._priced(int(counts.get("input_tokens", 0)), int(counts.get("output_tokens", 0)), latency_s)
        if not text.strip():
            raise ModelUnavailable(f"{self._name} answered with nothing ({_finish_reason(message)})", usage)
        raw = {"model": message.response_metadata.get("model_name", ""), "finish_reason": _finish_reason(message)}
        return Reply(text=text, usage=usage, raw=raw)


def _means_no_structured_output(error: Exception) -> bool:
    if isinstance(error, NotImplementedError):
        return True
    words = str(error).lower()
    return is_provider_error(error) and status_of(error) in (400, 422) and ("schema" in words or "format" in words)


def _text_of(message: Any) -> str:
    """Return a message's text; providers that answer a schema through a tool call keep the JSON in its arguments."""
    calls = getattr(message, "tool_calls", None)
    text = str(message.text)
    return json.dumps(calls[0]["args"]) if calls and not text.strip() else text


def _finish_reason(message: Any) -> str:
    data = message.response_metadata
    return str(data.get("finish_reason") or data.get("status") or "no reason given")
