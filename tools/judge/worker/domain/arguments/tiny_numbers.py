"""The inputs that have tiny numbers in the trial `tiny_numbers`, and how tiny: as far as the reference takes."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ridgeline.tools.judge.worker.domain.arguments.noted_arrangements import NotedArrangements
from ridgeline.tools.judge.worker.domain.halving import settle_by_halves
from ridgeline.tools.judge.worker.domain.objections import Objection
from ridgeline.tools.judge.worker.inputs.arrangements.tiny_numbers import may_be_tiny, with_tiny_numbers
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.records.trial_names import TINY_NUMBERS

_MOST_HALVINGS = (44.0, 24.0, 12.0)
"""How tiny the numbers of an input are at most, the furthest that is taken first."""
_LIMIT_S = 3.0
"""Time for all of it; after it nothing is halved any more."""


def settle_tiny_numbers(
    source: SecretSource, noted: NotedArrangements, names: Sequence[str], objection: Objection
) -> None:
    """Note in the secret source which inputs have tiny numbers, and how tiny; there is no such trial where none has.

    What the reference refuses is tried less far, beside what it takes.
    """
    spent = OwnTime()
    free = [i for i in source.may_be_larger if source.ways.may_change(i)]
    asked = may_be_tiny(source.nominal(TINY_NUMBERS), source.ways.forms, free)
    taken: dict[int, float] = {}

    def note(chosen: frozenset[int], most: float) -> None:
        halvings = {i: taken.get(i, most) for i in asked if i in taken or i in chosen}
        noted.note(TINY_NUMBERS, functools.partial(with_tiny_numbers, halvings=halvings) if halvings else None)

    def objection_to(part: Sequence[int], beside: frozenset[int], most: float) -> str:
        named = ", ".join(names[i] for i in part)
        return objection(TINY_NUMBERS, f"{TINY_NUMBERS} {named}, {most:g} halvings, beside {len(taken) + len(beside)}")

    for most in _MOST_HALVINGS:
        left = tuple(i for i in asked if i not in taken)
        if not left or spent.is_beyond(_LIMIT_S):
            break
        refused = settle_by_halves(
            left,
            note=functools.partial(note, most=most),
            objection_to=functools.partial(objection_to, most=most),
            is_over=lambda: spent.is_beyond(_LIMIT_S),
        )
        taken |= dict.fromkeys((i for i in left if i not in refused), most)
