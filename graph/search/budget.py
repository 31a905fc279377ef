"""The consumption of a search over all its sessions: what enters it, and the budget that it has used up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import counted

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.problems.spec import Budget
    from ridgeline.tools.records.results import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Consumption of one search over all its sessions."""

    usd: float
    tokens: int
    wall_s: float
    gpu_s: float


def charge(context: SearchContext, evaluation: Evaluation, *, on_device_s: float, entry: str = "") -> None:
    """Enter an evaluation's cost once: on a GPU `on_device_s` of it is the GPU's, the rest is the processor's.

    `entry` tells several evaluations of one candidate for one purpose apart.
    """
    if evaluation.total_s <= 0:  # an entry is charged once: one of nothing would hide the cost of a later measurement
        return
    gpu_s = on_device_s if context.target.device.kind is DeviceKind.CUDA else 0.0
    parts = [evaluation.candidate_id, evaluation.purpose, entry]
    context.archive.charge(
        ":".join(part for part in parts if part),
        cpu_s=evaluation.total_s - gpu_s,
        gpu_s=gpu_s,
        wall_s=evaluation.total_s,
        what=evaluation.purpose,
    )


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
    for name, words in _AMOUNTS.items():
        limit = getattr(budget, name)
        amount = getattr(used, name)
        if limit is not None and amount >= limit:
            return f"{words(amount)} of the {words(limit)} of --max-{name.replace('_', '-')} are used"
    return ""


def _seconds(amount: float) -> str:
    return f"{amount:,.0f} s" if amount >= 10 else f"{amount:.3g} s"


_AMOUNTS: Mapping[str, Callable[[float], str]] = {
    "usd": lambda amount: f"${amount:,.2f}" if amount >= 0.01 else f"${amount:g}",
    "tokens": lambda amount: counted(round(amount), "token"),
    "wall_s": _seconds,
    "gpu_s": _seconds,
}
"""A budget's limits, in the order in which they are looked at, and each one's amount in words."""
