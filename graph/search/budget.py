"""The consumption of a search over all its sessions: what enters it, and the budget that it has used up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.models.allowance import used_words
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.vocabulary import DeviceKind

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.problems.spec import Budget
    from ridgeline.tools.records.results import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumption:
    """Consumption of one search over all its sessions."""

    usd: float
    tokens: int
    wall_s: float
    finding_s: float  # the part of wall_s that a budget counts
    gpu_s: float
    unpriced_calls: int = 0  # calls whose price is unknown: their cost counts as nothing


def charge(context: SearchContext, evaluation: Evaluation, *, on_device_s: float, entry: str = "") -> None:
    """Enter an evaluation's cost once: on a GPU `on_device_s` of it is the GPU's, the rest is the processor's.

    `entry` tells several evaluations of one candidate for one purpose apart.
    """
    if evaluation.total_s <= 0:  # an entry is charged once: one of nothing would hide the cost of a later measurement
        return
    parts = [evaluation.candidate_id, evaluation.purpose, entry]
    entry_id = ":".join(part for part in parts if part)
    _charge(context, entry_id, took_s=evaluation.total_s, on_device_s=on_device_s, what=evaluation.purpose)


def charge_comparison(context: SearchContext, first_id: str, second_id: str, took_s: float) -> None:
    """Enter the time of an alternating run of two kernels once; one that was found in the archive took none."""
    entry_id = f"{first_id}:{second_id}:compare"
    _charge(context, entry_id, took_s=took_s, on_device_s=took_s, what="compare")


def _charge(context: SearchContext, entry_id: str, *, took_s: float, on_device_s: float, what: str) -> None:
    gpu_s = on_device_s if context.target.device.kind is DeviceKind.CUDA else 0.0
    context.archive.charge(entry_id, cpu_s=took_s - gpu_s, gpu_s=gpu_s, wall_s=took_s, what=what)


async def spent(context: SearchContext) -> Consumption:
    """Return the consumption by the journal, the ledger and the clock."""
    return await run_whole(_spent, context)


def _spent(context: SearchContext) -> Consumption:
    calls, ledger = context.journal.totals(), context.archive.ledger_totals()
    return Consumption(
        usd=calls.usd,
        tokens=calls.tokens,
        wall_s=context.wall_s,
        finding_s=context.finding_s,
        unpriced_calls=calls.unpriced,
        gpu_s=float(ledger.get("gpu_s", 0.0)),
    )


def exhausted(budget: Budget, used: Consumption) -> str:
    """Return the first budget that is used up, in words; "" while there is room in all."""
    for name, counted in _COUNTED.items():
        limit = getattr(budget, name)
        amount = getattr(used, counted)
        if limit is not None and amount >= limit:
            return used_words(name, amount, limit)
    return ""


_COUNTED = {"usd": "usd", "tokens": "tokens", "wall_s": "finding_s", "gpu_s": "gpu_s"}
"""What counts against each limit of a budget, in the order in which they are looked at."""
