"""The inputs of the trials `not_finite`, `one_nan` and `one_infinite`: what the reference asks for, and gives numbers for."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from ridgeline.tools.judge.worker.domain.arguments.asked_numbers import asks_for_not_finite
from ridgeline.tools.judge.worker.domain.arguments.noted_arrangements import NotedArrangements
from ridgeline.tools.judge.worker.domain.halving import settle_by_halves
from ridgeline.tools.judge.worker.domain.objections import Objection, Tried
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.arrangements.not_finite import (
    KINDS,
    Kinds,
    long_axes,
    may_be_not_finite,
    with_not_finite,
    with_one_not_finite,
)
from ridgeline.tools.judge.worker.inputs.arrangements.pictures import Arrangement
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import NOMINAL, NOT_FINITE, ONE_INFINITE, ONE_NAN

_LIMIT_S = 10.0
"""Time for all inputs of one reference; what is refused together after it is not looked at one by one."""
_TOGETHER = (KINDS, (math.nan,), (math.inf, -math.inf), (-math.inf,), (math.inf,))
"""What an input is given at once, where it has none of it yet."""
_UNASKED = "the reference asks for no such numbers"

_Part = TypeVar("_Part", int, tuple[int, int])
"""An input by its position, or a dimension of it."""


class NotFiniteInputs:
    """Finds what inputs may hold that is not finite, and notes it in the secret source."""

    def __init__(
        self, source: SecretSource, book: CaseBook, reference: Reference, objection: Objection, tried: Tried
    ) -> None:
        """Try nothing yet."""
        self._source = source
        self._book = book
        self._noted = NotedArrangements(source, book)
        self._reference = reference
        self._names = reference.input_names
        self._objection = objection
        self._tried = tried
        self._spent = OwnTime()

    def settle(self) -> dict[str, str]:
        """Return what is refused, by the trial and NAME with the reason; nothing where the reference asks for none of it.

        Each kind is tried in each input first, between other numbers; then whole lines along each dimension of what is taken.
        """
        inputs, ways = self._source.nominal(NOT_FINITE), self._source.ways
        asked = may_be_not_finite(inputs, ways.forms, [i for i in range(len(inputs)) if ways.may_change(i)])
        if not asked or self._tried(f"{NOT_FINITE}, what is asked for", self._why_not):
            return {}
        kinds, refused = self._settle_kinds(asked)
        if kinds:
            refused |= self._settle_lines([(i, axis) for i in kinds for axis in long_axes(inputs[i].shape)], kinds)
            refused |= self._settle_one(ONE_NAN, kinds, math.isnan)
            refused |= self._settle_one(ONE_INFINITE, kinds, math.isinf)
        return refused

    def _why_not(self) -> str:
        """Return why there is no such trial, "" where the reference asks for such numbers."""
        with self._book.usual_parameters():
            return "" if asks_for_not_finite(self._reference, self._source.given(NOMINAL[0])) else _UNASKED

    def _settle_kinds(self, asked: Sequence[int]) -> tuple[Kinds, dict[str, str]]:
        """Note what each of the inputs may hold, as many kinds as the reference takes; return that, and what is refused."""
        taken: dict[int, tuple[float, ...]] = {}
        why: dict[int, str] = {}
        for kinds in _TOGETHER:
            refused = self._settle_together(asked, kinds, taken)
            why = refused | why
        missing = {i: [kind for kind in KINDS if kind not in taken.get(i, ())] for i in asked}
        named = {f"{NOT_FINITE} {self._names[i]} ({_words(kinds)})": why[i] for i, kinds in missing.items() if kinds}
        return taken, named

    def _settle_together(
        self, asked: Sequence[int], kinds: tuple[float, ...], taken: dict[int, tuple[float, ...]]
    ) -> dict[int, str]:
        """Add these kinds to what is taken by inputs that have none of them; return those that do not take them."""
        left = [i for i in asked if not set(kinds).intersection(taken.get(i, ()))]

        def with_kinds(chosen: Collection[int]) -> dict[int, tuple[float, ...]]:
            return taken | {i: (*taken.get(i, ()), *kinds) for i in chosen}

        def arrange(chosen: Collection[int]) -> Arrangement | None:
            return functools.partial(with_not_finite, kinds=found) if (found := with_kinds(chosen)) else None

        refused = self._settle_parts(left, arrange, lambda i: f"{self._names[i]} ({_words(kinds)})")
        taken.update(with_kinds([i for i in left if i not in refused]))
        return refused

    def _settle_lines(self, lines: Sequence[tuple[int, int]], kinds: Kinds) -> dict[str, str]:
        """Note along which dimensions lines of inputs may hold nothing finite; return which are refused, with the reason."""

        def named(line: tuple[int, int]) -> str:
            return f"{self._names[line[0]]} (whole lines of dimension {line[1]})"

        def arrange(chosen: Collection[tuple[int, int]]) -> Arrangement:
            return functools.partial(with_not_finite, kinds=kinds, wholly=chosen)

        return {f"{NOT_FINITE} {named(line)}": why for line, why in self._settle_parts(lines, arrange, named).items()}

    def _settle_parts(
        self,
        parts: Sequence[_Part],
        arrange: Callable[[Collection[_Part]], Arrangement | None],
        named: Callable[[_Part], str],
    ) -> dict[_Part, str]:
        """Note those of the parts that the reference takes beside each other; return the others, each with the reason."""
        if not parts:
            return {}

        def objection_to(tried: Sequence[_Part], taken: frozenset[_Part]) -> str:
            return self._objection(NOT_FINITE, f"{NOT_FINITE} {', '.join(map(named, tried))}, beside {len(taken)}")

        return settle_by_halves(
            parts,
            note=lambda chosen: self._noted.note(NOT_FINITE, arrange(chosen)),
            objection_to=objection_to,
            is_over=lambda: self._spent.is_beyond(_LIMIT_S),
        )

    def _settle_one(self, trial: str, kinds: Kinds, is_one: Callable[[float], bool]) -> dict[str, str]:
        """Note one of the trials of a single number, of what is taken; return why there is none, where it is refused."""
        fit = {i: some for i, each in kinds.items() if (some := tuple(filter(is_one, each)))}
        if not fit:
            return {}
        self._noted.note(trial, functools.partial(with_one_not_finite, kinds=fit))
        if objection := self._objection(trial, trial):
            self._noted.note(trial, None)
        return {trial: objection} if objection else {}


def _words(kinds: Sequence[float]) -> str:
    return ", ".join(f"{kind:g}" for kind in kinds)
