"""The power of the trial `near_one`, in which no output vanishes that does so for usual numbers."""

from __future__ import annotations

from ridgeline.tools.judge.worker.domain.objections import Objection
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.outputs.vanishing import vanishes
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.records.trial_names import NEAR_ONE, NOMINAL

_POWERS = (0.25, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-10)
"""Powers that bring inputs near one in size: products of 4000 normal numbers to the power 1/256 are some 1e-4."""


def settle_power(source: SecretSource, book: CaseBook, objection: Objection) -> list[str]:
    """Return the trial `near_one` where much of an output vanishes without it; its power is the largest that mends that."""
    if not any(vanishes(e) for e in book.case(NOMINAL[0]).expected):
        return []
    for power in _POWERS:
        source.power = power
        book.forget(NEAR_ONE)
        why = objection(NEAR_ONE, f"{NEAR_ONE}, to the power {power:g}")
        if not why and not any(vanishes(e) for e in book.case(NEAR_ONE).expected):
            return [NEAR_ONE]
    book.forget(NEAR_ONE)
    return []
