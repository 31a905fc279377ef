"""Prices of models' tokens: the list prices of genai-prices, overridden by the problem's `prices`.

The list ships with that package: nothing is fetched, and an upgrade of the package brings newer prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ridgeline.problems.spec import PriceSettings


class Price(Protocol):
    """The price of one model."""

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the US dollars that a call with these token counts costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPrice:
    """The list price of a provider's model, standard tier; long prompts may cost more a token."""

    provider: str
    model: str

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        from genai_prices import Usage, calc_price

        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        return float(calc_price(usage, self.model, provider_id=self.provider).total_price)


def price_of(model: str, overrides: Mapping[str, PriceSettings] | None = None) -> Price | None:
    """Return the price of "provider:name" (an `@base_url` is ignored), or None when neither states one."""
    bare, at, _ = model.partition("@")
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
