"""A chat model's message in plain words: its text, whether it is whole, what it used."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from ridgeline.checkpoints.recording.check import MOST_TOKENS
from ridgeline.graph.models.allowance import prompt_tokens
from ridgeline.graph.models.requests import Usage

TRUNCATED = frozenset({"length", "max_tokens", "max_output_tokens"})
"""Providers' words, in lower case, for a reply that its limit of tokens cut off."""
FILTERED = frozenset(
    {"content_filter", "safety", "prohibited_content", "blocklist", "recitation", "spii", "refusal", "image_safety"}
)
"""Providers' words, in lower case, for a reply that a filter or the model itself withheld."""


def text_of(message: Any) -> str:
    """Return a message's text; providers that answer a schema through a tool call keep the JSON in its arguments."""
    calls = getattr(message, "tool_calls", None)
    text = str(message.text)
    return json.dumps(calls[0]["args"]) if calls and not text.strip() else text


def finish_reason(message: Any) -> str:
    """Return why a message ends where it does, in its provider's word."""
    data = message.response_metadata
    details = data.get("incomplete_details") or {}
    reason = details.get("reason") if isinstance(details, dict) else getattr(details, "reason", None)
    return str(
        reason or data.get("finish_reason") or data.get("stop_reason") or data.get("status") or "no reason given"
    )


def is_truncated(message: Any) -> bool:
    """Say whether the limit of tokens cut a message off."""
    return finish_reason(message).lower() in TRUNCATED


def refusal_of(message: Any) -> str:
    """Return the words in which a model refused; "" where it did not."""
    if stated := message.additional_kwargs.get("refusal"):
        return str(stated)
    blocks = message.content if isinstance(message.content, list) else []
    found = [block["refusal"] for block in blocks if isinstance(block, dict) and block.get("refusal")]
    return str(found[0]) if found else ""


def advice_without_text(message: Any) -> str:
    """Return what a model whose answer holds no text is told when it is asked once more."""
    if is_truncated(message):
        return "all of its tokens were used before any of the answer was written; think less and be brief"
    if refusal_of(message) or finish_reason(message).lower() in FILTERED:
        return "it was withheld by a filter or refused; this is a task of numerical programming, answer it as such"
    return "it was empty"


def usage_of(message: Any) -> Usage:
    """Return the tokens of a message as it states them, without their price."""
    counts = message.usage_metadata or {}
    inputs, outputs = counts.get("input_token_details") or {}, counts.get("output_token_details") or {}
    return Usage(
        input_tokens=_count(counts, "input_tokens"),
        output_tokens=_count(counts, "output_tokens"),
        cached_tokens=_count(inputs, "cache_read"),
        reasoning_tokens=_count(outputs, "reasoning"),
    )


def call_tokens(stated: Usage, *, sent: str, text: str) -> Usage:
    """Return a call's tokens: those that are stated, else as many as what was sent and answered has at most.

    A server that states none would be asked without end, whatever the budget.
    """
    return dataclasses.replace(
        stated,
        input_tokens=stated.input_tokens or prompt_tokens(sent),
        output_tokens=stated.output_tokens or prompt_tokens(text),
    )


def paid(stated: Usage, *, sent: str) -> Usage:
    """Return the tokens of an answer that cannot be read: those that are known, and at least what was sent.

    Of its output nothing is known but bytes, which may be a proxy's page as well as a kernel.
    """
    return dataclasses.replace(stated, input_tokens=stated.input_tokens or prompt_tokens(sent))


def paid_unread(usage: Usage, attempts: int, *, sent: str) -> Usage:
    """Return a call's tokens with those of the attempts before whose answers could not be read: what was sent, each time."""
    return dataclasses.replace(usage, input_tokens=usage.input_tokens + attempts * prompt_tokens(sent))


def is_count(stated: Any) -> bool:
    """Say whether a stated number of tokens can be one, a whole one: any other is a server's mistake, and none is stated."""
    is_number = isinstance(stated, int | float) and not isinstance(stated, bool)
    return is_number and 0 <= stated <= MOST_TOKENS and float(stated).is_integer()  # no NaN either


def _count(counts: Any, name: str) -> int:
    stated = counts.get(name)
    return int(stated) if is_count(stated) else 0
