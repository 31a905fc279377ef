"""A model whose requests go to its provider in batches, at half the price: answers come within a day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ridgeline.graph.models.batch.service import BatchService
    from ridgeline.graph.models.langchain import LangChainModel
    from ridgeline.graph.models.prices import Tariff
    from ridgeline.graph.models.retry import RetryPolicy

MOST_CALLS = 100
"""Requests of one batch. Gemini takes 20 MB of requests, OpenAI 200 MB; a prompt with a long reference has 100 KB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchModel:
    """A chat model that is asked through its provider's batches.

    `chat` makes each request, and reads each answer as if it had come alone.
    """

    name: str  # "openai:o3?batch"
    chat: LangChainModel
    service: BatchService
    policy: RetryPolicy

    @property
    def tariff(self) -> Tariff:
        """Return what is known of a call's cost before it is sent."""
        return self.chat.tariff
