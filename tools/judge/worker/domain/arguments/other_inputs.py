"""Other values for inputs, in the widest way that the reference takes: tried all at once, then one input after the other."""

from __future__ import annotations

from collections.abc import Callable

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.objections import (
    AS_DRAWN,
    GIVEN_ALIKE,
    MORE_DRAWS,
    OTHER_MEANING,
    REFUSED_DRAWS,
    Objection,
)
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.records.trial_names import NOMINAL, TWEAKED

_FIRST_VARIED = (NOMINAL[0], TWEAKED[0])  # the first trials to change inputs that `get_inputs` gives alike
_NOT_TOGETHER = "together with others, other values are outside the reference's domain"
_TOGETHER, _TOGETHER_AGAIN = "other inputs", "other inputs, each accepted alone"

Takes = Callable[[Tensors, str], bool]
"""Returns whether the reference takes inputs; the second argument names what is tried."""
GainMeaning = Callable[[str, str], bool]
"""Returns whether numbers of a draw stand for something else that do not as given; by its label, and what is tried."""


class OtherInputs:
    """Finds the way in which each input is changed that `get_inputs` does not change, or not enough."""

    def __init__(
        self,
        source: SecretSource,
        book: CaseBook,
        names: tuple[str, ...],
        *,
        objection: Objection,
        takes: Takes,
        gain_meaning: GainMeaning,
    ) -> None:
        """Try nothing yet; `names` are the inputs', `gain_meaning` says whether numbers of a draw stand for something else."""
        self._source = source
        self._ways = source.ways
        self._book = book
        self._names = names
        self._objection = objection
        self._takes = takes
        self._gain_meaning = gain_meaning
        self._kept: dict[str, str] = {}
        self._refusals: dict[int, str] = {}

    def settle(self) -> dict[str, str]:
        """Return the inputs that hold the same values everywhere, by name with the reason."""
        ways = self._ways
        if self._refuses_together(_TOGETHER):
            for index in ways.varied:
                self._settle_input(index)
            if self._refuses_together(_TOGETHER_AGAIN):
                for index in ways.varied:
                    self._leave(index, _NOT_TOGETHER)
        for index in ways.kept:
            self._kept.setdefault(self._names[index], GIVEN_ALIKE)
        return self._kept

    def left(self) -> dict[str, str]:
        """Return, once these are settled, the inputs that hold drawn structure alone, by name with the reason."""
        return {self._names[index]: self._refusals.get(index, AS_DRAWN) for index in self._ways.left}

    def _refuses_together(self, what: str) -> bool:
        """Return whether the reference refuses the inputs as they are changed now, all at once."""
        return bool(self._ways.varied and self._objection_to_varied(what))

    def _settle_input(self, index: int) -> None:
        count = 0
        while index in self._ways.varied:
            what = f"other {self._names[index]}, way {count}"
            with self._ways.varying_only(index):
                objection = self._objection_to_varied(what) or self._objection_to_draws(what)
                self._book.forget(*_FIRST_VARIED)
            if not objection:
                return
            self._ways.give_up_way(index)
            self._refusals[index] = objection
            count += 1
            if index not in self._ways.varied:
                self._leave(index, objection)

    def _objection_to_varied(self, what: str) -> str:
        """Return why the inputs as they are changed now are refused, "" where they are not."""
        objections = [self._objection(trial, what) for trial in _FIRST_VARIED]
        return next(filter(None, objections), "") or self._objection_to_meaning(what)

    def _objection_to_meaning(self, what: str) -> str:
        is_whole = any(self._ways.forms[i].is_whole for i in self._ways.varied)
        return OTHER_MEANING if is_whole and self._gain_meaning(f"{what}, drawn", what) else ""

    def _objection_to_draws(self, what: str) -> str:
        draws = (self._source.nominal(f"{what}, draw {i}") for i in range(MORE_DRAWS))
        return "" if all(self._takes(inputs, what) for inputs in draws) else REFUSED_DRAWS

    def _leave(self, index: int, why: str) -> None:
        """Leave an input as `get_inputs` gives it; one that it always gives alike is named."""
        while index in self._ways.varied:
            self._ways.give_up_way(index)
        self._refusals[index] = why
        self._book.forget(*_FIRST_VARIED)
        if index in self._ways.kept:
            self._kept[self._names[index]] = why
