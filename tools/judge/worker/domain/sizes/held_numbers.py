"""The number that inputs hold in the trials of HELD: beside it a first part shows where it is gone beside zeros.

A bounded level that one unit a step refills rests where the demand is one unit, and is full soon where it is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from ridgeline.tools.judge.worker.domain.objections import Tried
from ridgeline.tools.judge.worker.domain.sizes.first_parts import FirstParts
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.held import Held, numbers_to_hold
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.records.trial_names import EARLY, HELD

_LEAST = 0.1
"""Part of the output by which the places that count have to move beside a number: one place in a thousand counts by chance."""
_MORE = 8.0
"""They have to move by this x what they move by beside other numbers, but for the three quarters of these that show most: a
product depends on its first part beside each, and needs no such trial."""
_LEAST_SHOWN = 1 / 4
_CLEARLY_MORE = 2.0
"""A later number has to show so much more: those of the reference come first, beside which a state may rest for good."""
_LIMIT_S = 1.0
"""Time for the numbers of one trial, of which `_LEAST_TRIED` are tried in any case."""
_LEAST_TRIED = 4
"""Numbers that are tried however long it takes."""


def find_held_numbers(source: SecretSource, book: CaseBook, parts: FirstParts, tried: Tried) -> None:
    """Note in the secret source which number inputs hold in each trial of HELD; none where no number shows more than 0."""
    source.held.clear()
    if not source.may_be_larger:
        return
    rules = numbers_to_hold(parts.reference.source, parts.reference.scalars)
    for trial in HELD:

        def look(trial: str = trial) -> str:
            with book.usual_parameters():
                if rule := _best(parts, trial, rules):
                    source.held[trial] = rule
            return ""

        tried(f"{trial}, which number", look)


def _best(parts: FirstParts, trial: str, rules: Sequence[Held]) -> Held | None:
    """Return the rule whose number lets the output depend most on the first part, where it is gone beside zeros."""
    spent, is_late = OwnTime(), trial not in EARLY
    beside_zeros = parts.beside_zeros(is_late=is_late)
    if beside_zeros is None or not beside_zeros.leaves_places:
        return None
    best, most, shown = None, 0.0, list[float]()
    by_numbers: dict[tuple[float, ...], Held] = {}
    for rule in rules:
        by_numbers.setdefault(tuple(map(rule, parts.usual)), rule)
    by_numbers.pop(parts.zeros, None)
    for numbers, rule in by_numbers.items():
        if len(shown) >= _LEAST_TRIED and spent.is_beyond(_LIMIT_S):
            break
        response = parts.beside(numbers, is_late=is_late)
        if response is not None:
            shown.append(response.beyond(beside_zeros))
            if shown[-1] > _CLEARLY_MORE * most:
                best, most = rule, shown[-1]
    usual = sorted(shown)[int(_LEAST_SHOWN * len(shown))] if shown else 0.0
    return best if most >= max(_LEAST, _MORE * usual) else None
