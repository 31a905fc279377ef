"""The record of a finished round, as the archive keeps it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ridgeline.tools.records.codec import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord(Record):
    """The record of one round at its end; a field of None was never stored."""

    round: int
    ideas: tuple[str, ...] | None = None
    candidates: int | None = None  # written by a model
    ok: int | None = None  # of these
    tuned: int | None = None
    best_id: str | None = None  # of the search so far
    best_speedup: float | None = None
    best_speedup_ci95: tuple[float, float] | None = None
    best_median_ms: float | None = None
    elites: tuple[str, ...] | None = None
    tokens: int | None = None  # of the search so far, as the rest is
    usd: float | None = None
    unpriced_calls: int | None = None
    wall_s: float | None = None
    gpu_s: float | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            numbers = value if isinstance(value, tuple) else [value]
            if any(isinstance(n, bool) or (isinstance(n, float) and not math.isfinite(n)) for n in numbers):
                raise ValueError(f"{field.name}: {value} is no number")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a record from what the archive keeps of a round.

        Raises:
            KeyError, TypeError, ValueError: the round has no number, or a field is not what a search stores; the error names
                both.
        """
        if type(data["round"]) is not int:
            raise TypeError(f"round {str(data['round'])[:40]} has no number")
        try:
            return super(RoundRecord, cls).from_json(data)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"round {data['round']}: {error}") from None
