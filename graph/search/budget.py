"""The consumption of a search over all its sessions, and the budget that it has used up."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.problems.spec import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Consumption of one search over all its sessions."""

    usd: float
    tokens: int
    wall_s: float
    gpu_s: float


async def spent(context: SearchContext) -> Spent:
    """Return the consumption by the journal, the ledger and the clock."""
    return await asyncio.to_thread(_spent, context)


def _spent(context: SearchContext) -> Spent:
    calls, ledger = context.journal.totals(), context.archive.ledger_totals()
    return Spent(
        usd=float(calls["usd"]),
        tokens=int(calls["input_tokens"]) + int(calls["output_tokens"]),
        wall_s=context.wall_before_s + time.monotonic() - context.started_s,
        gpu_s=float(ledger.get("gpu_s", 0.0)),
    )


def exhausted(budget: Budget, used: Spent) -> str:
    """Return the first budget that is used up, in words; "" while there is room in all."""
    for name in ("usd", "tokens", "wall_s", "gpu_s"):
        limit = getattr(budget, name)
        amount = getattr(used, name)
        if limit is not None and amount >= limit:
            return f"{name}: {amount:.6g} of {limit:g} used"
    return ""
