"""The arguments whose change the comparison would not notice: a kernel may leave out what they take part in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.case import NOMINAL, Case
from ridgeline.tools.judge.worker.grading.cases import CaseBook
from ridgeline.tools.judge.worker.inputs.source import ArgumentKey, SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.modelnew.tensor_bits import equal_bits

_LIMIT_S = 3.0
"""Time for all arguments; a model of hundreds of slow layers has the rest of them looked at together."""
_DRAWS = 8
_REASON = "other values in its place alone change the output by less than the gate"

Passes = Callable[[Tensors, Case], bool]


class Effects:
    """Runs the reference with other values of single arguments, and asks whether the outputs would pass for right."""

    def __init__(self, book: CaseBook, source: SecretSource, reference: Reference, passes: Passes) -> None:
        """Look at nothing yet. `passes` says whether outputs pass for a case's."""
        self._book = book
        self._source = source
        self._reference = reference
        self._passes = passes

    def without(
        self, names: Callable[[ArgumentKey], str], scalar_names: Sequence[str] = (), *, limit_s: float = _LIMIT_S
    ) -> dict[str, str]:
        """Return the arguments that have no effect, by name with the reason."""
        found: dict[str, str] = {}
        changing = [c for c in self._source.changing if isinstance(c, int) or not self._book.default_parameters]
        until = time.perf_counter() + limit_s
        while changing and time.perf_counter() < until:
            argument = changing.pop()
            if not self._has_effect((argument,)):
                found[names(argument)] = _REASON
        if changing and not self._has_effect(tuple(changing)):
            found |= {names(argument): _REASON for argument in changing}
        return found | self._scalars_without(scalar_names)

    def _scalars_without(self, names: Sequence[str]) -> dict[str, str]:
        given = self._reference.scalars
        changed = [
            i for i, (was, other) in enumerate(zip(given, self._book.scalars, strict=False)) if repr(was) != repr(other)
        ]
        return {names[i]: _REASON for i in changed if not self._scalar_shows(i)}

    def _scalar_shows(self, index: int) -> bool:
        book, case = self._book, self._book.case(NOMINAL[0])
        others = list(self._reference.scalars)
        others[index] = book.scalars[index]
        with book.parameters_kept(), self._reference.with_scalars(others):
            book.place_parameters(case.parameters)
            try:
                outputs = self._reference.run(case.inputs)
            except ProblemError:
                return True
        return not self._passes(outputs, case)

    def _has_effect(self, chosen: tuple[ArgumentKey, ...]) -> bool:
        """Return whether other values of the chosen arguments alone would be seen, beside either trial's other ones."""
        return any(self._shows(base, chosen) for base in dict.fromkeys((self._book.alone_base, NOMINAL[0])))

    def _shows(self, base: str, chosen: tuple[ArgumentKey, ...]) -> bool:
        book = self._book
        with book.parameters_kept():
            case = book.case(base)
            inputs, parameters = self._others(case, chosen)
            book.place_parameters(parameters)
            try:
                outputs = self._reference.run(inputs)
            except ProblemError:
                return True
            return not self._passes(outputs, case)

    def _others(self, case: Case, chosen: tuple[ArgumentKey, ...]) -> tuple[Tensors, dict[str, torch.Tensor]]:
        """Return a case's contents with other values in the chosen places; a few numbers may be drawn alike at first."""
        for attempt in range(_DRAWS):
            inputs, parameters = self._book.with_others(case.name, chosen, f"effect:{attempt}")
            pairs = [
                (inputs[c], case.inputs[c]) if isinstance(c, int) else (parameters[c], case.parameters[c])
                for c in chosen
            ]
            if not all(equal_bits(new, old) for new, old in pairs):
                break
        return inputs, parameters
