"""The inputs that have tiny numbers in the trial `tiny_numbers`, and how tiny, and those that have rows of zeros there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import torch

from ridgeline.tools.errors import ProblemError, without_name
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.arguments.noted_arrangements import NotedArrangements
from ridgeline.tools.judge.worker.domain.halving import settle_by_halves
from ridgeline.tools.judge.worker.domain.objections import Objection, Tried
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.arrangements.tiny_numbers import may_be_tiny, with_tiny_numbers
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import TINY_NUMBERS

_MOST_HALVINGS = (44.0, 24.0, 12.0)
"""How tiny the numbers of an input are at most, the furthest that is taken first."""
_LIMIT_S = 3.0
"""Time for all of it; after it nothing is halved any more."""
_OF_SIGNS = "its output would depend on the sign of a zero"


_Contents = tuple[Mapping[int, float], frozenset[int]]
"""How often the numbers of each input are halved at most, and which have rows of zeros."""


class TinyNumbers:
    """Finds the inputs that have tiny numbers, and those that have rows of zeros, and notes them in the secret source."""

    def __init__(
        self,
        source: SecretSource,
        noted: NotedArrangements,
        book: CaseBook,
        reference: Reference,
        *,
        objection: Objection,
        tried: Tried,
    ) -> None:
        """Try nothing yet."""
        self._source = source
        self._noted = noted
        self._book = book
        self._reference = reference
        self._objection = objection
        self._tried = tried
        self._spent = OwnTime()
        free = [i for i in source.may_be_larger if source.ways.may_change(i)]
        self._asked = may_be_tiny(source.nominal(TINY_NUMBERS), source.ways.forms, free)

    def settle(self) -> None:
        """Note what the reference takes; there is no such trial where it takes nothing of it.

        What it refuses is tried less far, beside what it takes, and rows of zeros beside that.
        """
        taken: dict[int, float] = {}
        for most in _MOST_HALVINGS:
            left = tuple(i for i in self._asked if i not in taken)
            if not left or self._spent.is_beyond(_LIMIT_S):
                break
            refused = self._settle(left, functools.partial(_also_halved, taken, most))
            taken |= dict.fromkeys((i for i in left if i not in refused), most)
        if self._asked:
            self._settle(self._asked, lambda chosen: (taken, chosen))

    def _settle(self, asked: Sequence[int], contents: Callable[[frozenset[int]], _Contents]) -> dict[int, str]:
        """Note the inputs of `asked` that are taken so, and return the others with the reason.

        `contents` returns what the chosen ones are beside what is taken: how often each is halved, and which have zeros.
        """

        def note(chosen: frozenset[int]) -> None:
            halvings, zeros = contents(chosen)
            arrange = functools.partial(with_tiny_numbers, halvings=halvings, zeros=zeros)
            self._noted.note(TINY_NUMBERS, arrange if halvings or zeros else None)

        def objection_to(part: Sequence[int], taken: frozenset[int]) -> str:
            halvings, zeros = contents(taken.union(part))
            named = ", ".join(self._reference.input_names[i] for i in part)
            how = "rows of zeros" if zeros else f"{halvings[part[0]]:g} halvings"
            what = f"{TINY_NUMBERS} {named}, {how}, beside {len(halvings) + len(zeros) - len(part)}"
            objection = self._objection(TINY_NUMBERS, what)
            if objection or not zeros:
                return objection
            return self._tried(f"{what}, of either sign", lambda: self._objection_to_signs(halvings, zeros))

        return settle_by_halves(
            asked, note=note, objection_to=objection_to, is_over=lambda: self._spent.is_beyond(_LIMIT_S)
        )

    def _objection_to_signs(self, halvings: Mapping[int, float], zeros: frozenset[int]) -> str:
        """Return why zeros are refused whose sign an output depends on: another kernel may have the other one."""
        with self._book.parameters_kept():
            self._book.place_parameters(self._source.weights.usual(TINY_NUMBERS))
            try:
                one, other = (self._outputs(halvings, zeros, zero) for zero in (0.0, -0.0))
            except ProblemError as error:
                return without_name(error)
        return "" if all(torch.allclose(*pair, equal_nan=True) for pair in zip(one, other, strict=True)) else _OF_SIGNS

    def _outputs(self, halvings: Mapping[int, float], zeros: frozenset[int], zero: float) -> Tensors:
        arrange = functools.partial(with_tiny_numbers, halvings=halvings, zeros=zeros, zero=zero)
        inputs = self._source.arranged(TINY_NUMBERS, TINY_NUMBERS, arrange)
        return tuple(output.clone() for output in self._reference.run(inputs))


def _also_halved(taken: Mapping[int, float], most: float, chosen: frozenset[int]) -> _Contents:
    return {**taken, **dict.fromkeys(chosen, most)}, frozenset()
