"""The inputs that `solid`, `corridor`, `shared_numbers` and `tiny_numbers` arrange: all that may be, or what is taken."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.arguments.noted_arrangements import NotedArrangements
from ridgeline.tools.judge.worker.domain.arguments.tiny_numbers import TinyNumbers
from ridgeline.tools.judge.worker.domain.halving import settle_by_halves
from ridgeline.tools.judge.worker.domain.objections import Objection, Tried
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.arrangements.areas import may_have_areas, with_areas
from ridgeline.tools.judge.worker.inputs.arrangements.close_numbers import may_be_close
from ridgeline.tools.judge.worker.inputs.arrangements.corridors import may_be_corridors, with_corridors
from ridgeline.tools.judge.worker.inputs.arrangements.marks import Marks
from ridgeline.tools.judge.worker.inputs.arrangements.pictures import Arrangement
from ridgeline.tools.judge.worker.inputs.arrangements.shared_numbers import (
    may_hold_marks,
    sources_of_numbers,
    with_shared_numbers,
)
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import CORRIDOR, SHARED_NUMBERS, SOLID

_Arrange = Callable[[frozenset[int]], Arrangement]
"""Returns an arrangement of some inputs."""


class ArrangedInputs:
    """Finds the inputs that each of these trials arranges, and notes how in the secret source."""

    def __init__(
        self, source: SecretSource, book: CaseBook, reference: Reference, objection: Objection, tried: Tried
    ) -> None:
        """Try nothing yet."""
        self._source = source
        self._book = book
        self._tried = tried
        self._noted = NotedArrangements(source, book)
        self._reference = reference
        self._names = reference.input_names
        self._objection = objection

    def settle(self) -> dict[str, str]:
        """Return the inputs that stay as they are in a trial, by the trial and NAME with the reason.

        Errors count beside what an output usually varies by: of numbers that are alike in areas it varies little.
        """
        forms, inputs = self._source.ways.forms, self._source.nominal(SOLID)
        free = [i for i in range(len(forms)) if self._source.ways.may_change(i)]
        refused = self._settle_areas(may_have_areas(inputs, forms, free))
        refused |= self._settle_trial(
            CORRIDOR,
            may_be_corridors(inputs, forms, free),
            lambda chosen: functools.partial(with_corridors, chosen=chosen),
        )
        refused |= self._settle_shared(inputs, free)
        TinyNumbers(
            *(self._source, self._noted, self._book, self._reference), objection=self._objection, tried=self._tried
        ).settle()
        return {f"{trial} {self._names[i]}": why for (trial, i), why in refused.items()}

    def _settle_areas(self, asked: Sequence[int]) -> dict[tuple[str, int], str]:
        """Note the inputs that have areas: of those that are refused, masks and whole numbers none of whose rows is alike."""
        forms = self._source.ways.forms
        refused = self._settle_trial(
            SOLID, asked, lambda chosen: functools.partial(with_areas, chosen=chosen, forms=forms)
        )
        taken = frozenset(asked).difference(i for _, i in refused)
        again = tuple(i for _, i in refused if forms[i].is_mask or forms[i].is_whole)

        def arrange(chosen: frozenset[int]) -> Arrangement:
            return functools.partial(with_areas, chosen=taken | chosen, forms=forms, unlike=chosen)

        if not again:
            return refused
        others = {key: why for key, why in refused.items() if key[1] not in again}
        return others | self._settle_trial(SOLID, again, arrange, beside=taken)

    def _settle_shared(self, inputs: Tensors, free: Sequence[int]) -> dict[tuple[str, int], str]:
        """Note the inputs that hold numbers of others, and those that hold numbers close to their own as well."""
        forms = self._source.ways.forms
        marks = Marks.of(self._reference.source, self._source.drawn_from())
        sources = sources_of_numbers(inputs, self._source.weights.defaults, forms, free, marks)
        parameters = functools.partial(self._source.weights.usual, SHARED_NUMBERS)
        shared = functools.partial(
            with_shared_numbers,
            sources=sources,
            distinct=[i for i in free if forms[i].is_distinct],
            marks=marks,
            parameters=parameters,
        )
        refused = self._settle_trial(
            SHARED_NUMBERS, tuple(sources), lambda chosen: functools.partial(shared, chosen=chosen)
        )
        taken = frozenset(sources).difference(i for _, i in refused)
        longest = max(size for t in (*inputs, *self._reference.named_tensors().values()) for size in (0, *t.shape))
        close = may_be_close(inputs, forms, free, longest)
        not_close: dict[tuple[str, int], str] = {}
        if close:
            not_close = self._settle_trial(
                SHARED_NUMBERS,
                close,
                lambda chosen: functools.partial(shared, chosen=taken, close=chosen),
                beside=taken,
                what="close numbers of",
            )
        near = frozenset(close).difference(i for _, i in not_close)
        if floats := may_hold_marks(inputs, forms, free, marks):
            self._settle_trial(  # those that are refused are unnamed: no number is as likely as any other
                SHARED_NUMBERS,
                floats,
                lambda chosen: functools.partial(shared, chosen=taken, close=near, floats=chosen),
                beside=taken | near,
                what="written numbers in",
            )
        return refused | not_close

    def _settle_trial(
        self,
        trial: str,
        asked: Sequence[int],
        arrange: _Arrange,
        *,
        beside: frozenset[int] = frozenset(),
        what: str = "",
    ) -> dict[tuple[str, int], str]:
        """Note the inputs of `asked` that a trial may arrange, beside those that it does anyhow; return why others stay.

        `what` names the attempts of a trial that arranges another thing as well.
        """

        def note(chosen: frozenset[int]) -> None:
            self._noted.note(trial, arrange(chosen) if chosen or beside else None)

        def objection_to(part: Sequence[int], taken: frozenset[int]) -> str:
            named = ", ".join(self._names[i] for i in part)
            return self._objection(
                trial, " ".join(filter(None, (trial, what, f"{named}, beside {len(taken | beside)}")))
            )

        refused = settle_by_halves(asked, note=note, objection_to=objection_to)
        return {(trial, i): why for i, why in refused.items()}
