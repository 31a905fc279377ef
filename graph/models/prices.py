"""What a model's tokens cost: the list prices shipped in prices.json, overridden by the problem's `prices`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PRICES_FILE = Path(__file__).parent / "prices.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return what a call with these token counts costs."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


def price_of(model: str, overrides: Mapping[str, Mapping[str, float]] | None = None) -> Price | None:
    """Return the price of "provider:name" (an `@base_url` is ignored), or None when nobody stated one."""
    bare = model.partition("@")[0]
    listed = json.loads(PRICES_FILE.read_text())["models"]
    entry = (overrides or {}).get(model) or (overrides or {}).get(bare) or (None if "@" in model else listed.get(bare))
    return Price(input=float(entry["input"]), output=float(entry["output"])) if entry else None
