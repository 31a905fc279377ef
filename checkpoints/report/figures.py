"""Figures as the report writes them: times, ratios, counts and plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ridgeline.tools.wording import near_one, usd_words


def ms_text(value: float | None) -> str:
    """Return a time, in microseconds below 0.1 ms."""
    return "—" if value is None else f"{value:.3f} ms" if value >= 0.1 else f"{value * 1000:.1f} µs"


def ratio_text(value: float | None) -> str:
    """Return a ratio with a multiplication sign."""
    return "—" if value is None else f"{value:.2f}×"


def exact_ratio_text(value: float | None) -> str:
    """Return a ratio with a third digit near 1."""
    return "—" if value is None else f"{near_one(value)}×"


def span_text(interval: Sequence[float]) -> str:
    """Return the two ends of a ratio's interval."""
    low, high = interval
    return f"{low:.2f} to {high:.2f}"


def seconds_text(value: float | None) -> str:
    """Return a duration in seconds, minutes or hours."""
    if value is None:
        return "—"
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"


def usd_text(value: float | None, unpriced: int = 0) -> str:
    """Return an amount of US dollars, and of how many calls the price is unknown."""
    return "—" if value is None else usd_words(value, unpriced)


def count_text(value: int | None) -> str:
    """Return a whole number with thousands separators."""
    return "—" if value is None else f"{value:,}"


def plain_text(value: Any) -> str:
    """Return a JSON value on one line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{k}: {plain_text(v)}" for k, v in value.items())
    if isinstance(value, list):
        are_flags = any(str(v).startswith("-") for v in value)
        return (" " if are_flags else ", ").join(plain_text(v) for v in value)
    return "—" if value is None else str(value)


def bytes_text(value: int) -> str:
    """Return a number of bytes in the unit that suits it."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value} B"
