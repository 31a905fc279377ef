"""Other values for parameters and buffers, in the widest way that the reference takes: all at once, then by halves.

One matrix that has to be definite says nothing of the weights beside it: each of them varies as widely as it may.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from ridgeline.tools.errors import ProblemError, without_name
from ridgeline.tools.judge.worker.domain.alike import difference
from ridgeline.tools.judge.worker.domain.conditioning import LEFT_TO_ROUNDING
from ridgeline.tools.judge.worker.domain.halving import take_by_halves
from ridgeline.tools.judge.worker.domain.objections import MORE_DRAWS, REFUSED_DRAWS, Known, Tried
from ridgeline.tools.judge.worker.grading.cases.case import are_finite
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.cases.class_errors import moved_in_type
from ridgeline.tools.judge.worker.inputs.parameters import Values
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import GIVEN, NOMINAL

RANDOM_PARAMETERS = "random parameters"
"""The name of the first attempt: all of them random at once."""
_LIMIT_S = 10.0
_MOST_HALVES = 48
"""Attempts at the first way, half as many at each further one, and all within `_LIMIT_S`: what is refused together after
that is given up one way together. One of 200 parameters takes some 20."""
_LEFT = 1 / 16
"""Part of itself by which an output moves with the last bits of parameters that leaves it to rounding, ..."""
_FAR_WORSE = 64.0
"""... where that is more than this x what the last bits of the model's own parameters move it by."""
_WORSE = 8.0
"""Beyond this x that move some draws of the same way may leave an output to rounding: `_DRAWS_WHERE_WORSE` are looked at."""
_DRAWS_WHERE_WORSE = 8


class OtherParameters:
    """Finds the way in which each parameter and buffer may vary beside the others."""

    def __init__(
        self,
        source: SecretSource,
        book: CaseBook,
        reference: Reference,
        tried: Tried,
        *,
        limit_s: float = _LIMIT_S,
        most_halves: int = _MOST_HALVES,
    ) -> None:
        """Try nothing yet."""
        self._source = source
        self._weights = source.weights
        self._book = book
        self._reference = reference
        self._tried = tried
        self._spent, self._limit_s = OwnTime(), limit_s
        self._halves_left = self._most_halves = most_halves
        self._is_default_finite: bool | None = None
        self._default_moves: float | None = None

    def settle(self) -> dict[str, str]:
        """Return those that the reference takes with no other values, by name in the model with the reason."""
        kept = self._settled()
        self._weights.are_ways_known = True
        return kept

    def _settled(self) -> dict[str, str]:
        weights, kept = self._weights, dict[str, str]()
        fragile = weights.fragile
        if not weights.varied:
            return kept
        objection = self._objection(RANDOM_PARAMETERS, MORE_DRAWS if fragile else 1)
        is_likely = {n: n in fragile or not weights.defaults[n].is_floating_point() for n in weights.varied}
        asked = sorted(weights.varied, key=is_likely.__getitem__)  # what is refused lies together
        taken, way = frozenset[str](), 0
        while objection:
            self._halves_left = self._most_halves >> way
            taken, refused = take_by_halves(
                asked, objection, taken, objection_to=partial(self._objection_to, way), is_over=self._is_over
            )
            for name in refused:
                weights.give_up_way(name)
            kept |= {name: why for name, why in refused.items() if name not in weights.varied}
            asked, way = [name for name in refused if name not in kept], way + 1
            objection = self._objection_to(way, asked, taken) if asked else ""
        return kept

    def _is_over(self) -> bool:
        return self._halves_left <= 0 or self._spent.is_beyond(self._limit_s)

    def _objection_to(self, way: int, asked: Sequence[str], taken: frozenset[str]) -> str:
        self._halves_left -= 1
        with self._weights.varying_only(taken.union(asked)):
            return self._objection(f"other {', '.join(asked)}, way {way}", MORE_DRAWS)

    def _objection(self, what: str, draws: int) -> str:
        return self._tried(what, lambda: self._refusal(what, draws))

    def _refusal(self, what: str, draws: int) -> str:
        """Return why the reference does not take the parameters as they vary now, "" when it does."""
        self._book.forget_errors()
        try:
            if not self._book.make(GIVEN).is_finite and self._is_finite_by_default():
                return Known.OUTSIDE
            with self._book.parameters_kept():
                further = (self._refusal_of_draw(f"{what}, draw {i}", in_places=i % 2 == 0) for i in range(draws))
                return next(filter(None, further), "") or self._refusal_of_usual(what) or self._refusal_of_seldom(what)
        except ProblemError as error:
            return without_name(error)

    def _refusal_of_draw(self, label: str, *, in_places: bool) -> str:
        """Return why the reference does not take another draw, with one place of each changed as between blocks."""
        weights = self._weights
        values = weights.random(label)
        if in_places:
            others = weights.random(f"{label}, others")
            values |= {n: weights.with_one_place(n, values[n], others[n], f"{label}:{n}") for n in weights.varied}
        self._book.place_parameters(values)
        is_taken = are_finite(self._reference.run(self._source.given(label))) or not self._is_finite_by_default()
        return "" if is_taken else REFUSED_DRAWS

    def _refusal_of_usual(self, what: str) -> str:
        """Return why the reference does not take usual trials' parameters: it gives nothing finite, or is left to rounding.

        Where they move its output more than the model's own do, further draws are looked at.
        """
        moves = [self._moves(self._weights.usual(trial), trial) for trial in NOMINAL]
        limit = _WORSE * self._moves_by_default
        for i in range(_DRAWS_WHERE_WORSE):
            if max(moves) <= limit or max(moves) > _LEFT:
                break
            moves.append(self._moves(self._weights.random(f"{what}, moved {i}"), f"{what}, moved {i}"))
        return self._refusal_of_moves(moves)

    def _refusal_of_seldom(self, what: str) -> str:
        """Return why the reference does not take what few draws have, of which none may have come yet: chains."""
        values = self._weights.with_seldom(f"{what}, seldom")
        return self._refusal_of_moves([self._moves(values, f"{what}, seldom")]) if values else ""

    def _refusal_of_moves(self, moves: Sequence[float]) -> str:
        """Return why the reference does not take parameters whose last bits move its outputs so far."""
        if math.inf in moves:
            return REFUSED_DRAWS if self._is_finite_by_default() else ""
        return LEFT_TO_ROUNDING if max(moves) > max(_LEFT, _FAR_WORSE * self._moves_by_default) else ""

    @property
    def _moves_by_default(self) -> float:
        """By what part of itself the last bits of the model's own parameters move an output."""
        if self._default_moves is None:
            self._default_moves = self._moves(self._weights.defaults, GIVEN)
        return self._default_moves

    def _moves(self, values: Values, label: str) -> float:
        """Return by what part of itself an output moves, the one that moves most, with the last bits of half of the parameters.

        Infinity where it is not finite; 0 where the reference refuses other last bits: halves of a symmetric matrix that
        have to be equal.
        """
        inputs = self._source.given(label)
        self._book.place_parameters(values)
        outputs = tuple(output.clone() for output in self._reference.run(inputs))
        if not are_finite(outputs):
            return math.inf
        self._book.place_parameters(moved_in_type((), values)[1])
        try:
            return max(map(difference, outputs, self._reference.run(inputs)), default=0.0)
        except ProblemError:
            return 0.0

    def _is_finite_by_default(self) -> bool:
        if self._is_default_finite is None:
            self._book.forget_errors()
            with self._weights.varying_only(()):
                self._is_default_finite = self._book.make(GIVEN).is_finite
            self._book.forget_errors()
        return self._is_default_finite
