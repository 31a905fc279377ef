"""The inputs whose rows are those of other arguments in the trial `parallel_rows`: all that may be, or what is taken.

Where many such rows leave the output to rounding, the trial `more_parallel_rows` has them all the same: whatever its values
are, they have to be finite there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from ridgeline.tools.errors import ProblemError, without_name
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.arguments.noted_arrangements import NotedArrangements
from ridgeline.tools.judge.worker.domain.conditioning import LEFT_TO_ROUNDING
from ridgeline.tools.judge.worker.domain.halving import settle_by_halves
from ridgeline.tools.judge.worker.domain.objections import MORE_DRAWS, REFUSED_DRAWS, Objection, Tried
from ridgeline.tools.judge.worker.domain.sizes.between import why_change_shows_nothing
from ridgeline.tools.judge.worker.domain.sizes.usual_trial import Arguments
from ridgeline.tools.judge.worker.grading.cases.case import are_finite
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.arrangements.parallel_rows import (
    AMOUNTS,
    ANY_AMOUNT,
    Amount,
    sources_of_rows,
    with_parallel_rows,
)
from ridgeline.tools.judge.worker.inputs.arrangements.pictures import Arrangement
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import MORE_PARALLEL_ROWS, PARALLEL_ROWS


class ParallelRows:
    """Finds the inputs whose rows may be other arguments', and notes them in the secret source."""

    def __init__(
        self, source: SecretSource, book: CaseBook, reference: Reference, objection: Objection, tried: Tried
    ) -> None:
        """Try nothing yet."""
        self._source = source
        self._book = book
        self._reference = reference
        self._noted = NotedArrangements(source, book)
        self._objection = objection
        self._tried = tried
        ways = source.ways
        free = [i for i in range(len(ways.forms)) if ways.may_change(i)]
        inputs = source.nominal(PARALLEL_ROWS)
        self._sources = sources_of_rows(inputs, source.weights.defaults, ways.forms, free)

    def settle(self) -> dict[str, str]:
        """Return the inputs that stay as they are, by `parallel_rows NAME` with the reason.

        Where the reference refuses as many rows, fewer of them are tried. There is no such trial
        where an output moves as far as the inputs do: of a product, or a sum.
        """
        if not self._sources or self._tried(f"{PARALLEL_ROWS}, in the middle", self._why_they_show_nothing):
            return {}
        taken: dict[int, Amount] = {}
        refused = dict.fromkeys(self._sources, "")
        for amount in AMOUNTS:
            asked, beside = tuple(refused), dict(taken)
            refused = self._settle(asked, amount, beside)
            taken |= dict.fromkeys((i for i in asked if i not in refused), amount)
            if amount is AMOUNTS[0] and LEFT_TO_ROUNDING in refused.values():
                self._settle_more()
            if not refused:
                break
        return {f"{PARALLEL_ROWS} {self._reference.input_names[i]}": why for i, why in refused.items()}

    def _settle(self, asked: Sequence[int], amount: Amount, beside: Mapping[int, Amount]) -> dict[int, str]:
        """Note the inputs of `asked` whose rows may be others', beside those whose rows are; return why others stay."""

        def note(chosen: frozenset[int]) -> None:
            both = {**beside, **dict.fromkeys(chosen, amount)}
            self._noted.note(PARALLEL_ROWS, self._arrangement(PARALLEL_ROWS, both) if both else None)

        def objection_to(part: Sequence[int], taken: frozenset[int]) -> str:
            named = ", ".join(self._reference.input_names[i] for i in part)
            return self._objection(
                PARALLEL_ROWS, f"{PARALLEL_ROWS} {named}, {amount}, beside {len(taken) + len(beside)}"
            )

        return settle_by_halves(asked, note=note, objection_to=objection_to)

    def _settle_more(self) -> None:
        """Note the inputs whose rows may be others' as often as may be, where an output has only to be finite.

        The reference has to be so in further draws, too: of one that nothing keeps from an infinity some draw has one.
        """

        def note(chosen: frozenset[int]) -> None:
            amounts = dict.fromkeys(chosen, ANY_AMOUNT)
            self._noted.note(MORE_PARALLEL_ROWS, self._arrangement(MORE_PARALLEL_ROWS, amounts) if chosen else None)

        def objection_to(part: Sequence[int], taken: frozenset[int]) -> str:
            named = ", ".join(self._reference.input_names[i] for i in part)
            what = f"{MORE_PARALLEL_ROWS} {named}, beside {len(taken)}"
            return self._objection(MORE_PARALLEL_ROWS, what) or self._tried(f"{what}, draws", self._objection_to_draws)

        settle_by_halves(tuple(self._sources), note=note, objection_to=objection_to)

    def _objection_to_draws(self) -> str:
        parameters = self._source.weights.usual(MORE_PARALLEL_ROWS)
        with self._book.parameters_kept():
            self._book.place_parameters(parameters)
            for draw in range(MORE_DRAWS):
                inputs = self._source.arranged(f"{MORE_PARALLEL_ROWS}, draw {draw}", MORE_PARALLEL_ROWS)
                try:
                    outputs = (*self._reference.run(inputs), *self._reference.run_double(inputs, parameters))
                except ProblemError as error:
                    return without_name(error)
                if not are_finite(outputs):
                    return REFUSED_DRAWS
        return ""

    def _arrangement(self, trial: str, chosen: Mapping[int, Amount]) -> Arrangement:
        parameters = functools.partial(self._source.weights.usual, trial)
        return functools.partial(with_parallel_rows, sources=self._sources, chosen=chosen, parameters=parameters)

    def _why_they_show_nothing(self) -> str:
        arrange = self._arrangement(PARALLEL_ROWS, dict.fromkeys(self._sources, AMOUNTS[0]))
        usual, parameters = self._source.nominal(PARALLEL_ROWS), self._source.weights.usual(PARALLEL_ROWS)
        changed = self._source.arranged(PARALLEL_ROWS, PARALLEL_ROWS, arrange)
        arguments = Arguments(inputs=usual, parameters=parameters, scalars=tuple(self._reference.scalars))
        with self._book.parameters_kept():
            self._book.place_parameters(parameters)
            try:
                return why_change_shows_nothing(arguments, (changed, parameters), self._outputs)
            except ProblemError as error:
                return str(error)

    def _outputs(self, arguments: Arguments) -> Tensors:
        return tuple(output.clone() for output in self._reference.run(arguments.inputs))
