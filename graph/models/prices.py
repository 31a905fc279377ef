"""Prices of models' tokens: the list prices of genai-prices, overridden by the problem's `prices`.

The list ships with that package: nothing is fetched, and an upgrade of the package brings newer prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ridgeline.graph.models.requests import Usage
    from ridgeline.problems.model_calls import PriceSettings


BATCH_SUFFIX = "?batch"
"""Ends the name of a model that is asked through its provider's batches."""
BATCH_FACTOR = 0.5
"""Of the standard price: platform.openai.com/docs/guides/batch and ai.google.dev/gemini-api/docs/batch-api both say half.
genai-prices lists the standard tier alone."""


def is_batch(model: str) -> bool:
    """Say whether a model's name means its provider's batches."""
    return model.endswith(BATCH_SUFFIX)


class Price(Protocol):
    """The price of one model."""

    def usd(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return the US dollars that a call costs; `cached_tokens` of its input were read from the provider's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPrice:
    """The list price of a provider's model, standard tier; long prompts may cost more a token."""

    provider: str
    model: str

    def usd(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        from genai_prices import Usage, calc_price

        usage = Usage(input_tokens=input_tokens, cache_read_tokens=cached_tokens, output_tokens=output_tokens)
        return float(calc_price(usage, self.model, provider_id=self.provider).total_price)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPrice:
    """The price of a model in its provider's batches."""

    alone: Price

    def usd(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        return BATCH_FACTOR * self.alone.usd(input_tokens, output_tokens, cached_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """The cost of a model's calls, as far as it is known before they are sent."""

    price: Price | None = None
    max_output_tokens: int | None = None  # of one reply, as the provider is told; None: the provider's own limit

    def usd(self, usage: Usage) -> float | None:
        """Return the US dollars of a call; None without a price."""
        if self.price is None:
            return None
        return self.price.usd(
            usage.input_tokens, usage.output_tokens, cached_tokens=min(usage.cached_tokens, usage.input_tokens)
        )


def price_of(model: str, overrides: Mapping[str, PriceSettings] | None = None) -> Price | None:
    """Return the price of "provider:name" (an `@base_url` is ignored), or None when neither states one.

    That of "provider:name?batch" is half of it, unless an override names it so.
    """
    alone = model.removesuffix(BATCH_SUFFIX)
    bare, at, _ = alone.partition("@")
    if alone != model:
        stated = (overrides or {}).get(model) or (overrides or {}).get(f"{bare}{BATCH_SUFFIX}")
        price = None if stated else price_of(alone, overrides)
        return stated or (BatchPrice(alone=price) if price else None)
    stated = (overrides or {}).get(model) or (overrides or {}).get(bare)
    if stated:
        return stated
    return None if at else _listed(bare)


def _listed(model: str) -> Price | None:
    provider, _, name = model.partition(":")
    price = ListPrice(provider=provider, model=name)  # genai-prices knows LangChain's names of providers as well
    try:
        price.usd(0, 0)
    except LookupError:
        return None
    return price
