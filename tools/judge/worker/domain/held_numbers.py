"""The number that inputs hold in the trials of HELD: beside it a first part shows where it is gone beside zeros.

A bounded level that one unit a step refills rests where the demand is one unit, and is full soon where it is zero.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.objections import Tried
from ridgeline.tools.judge.worker.domain.trial_sizes import MOST_STEPS, size_of
from ridgeline.tools.judge.worker.grading.case import are_finite
from ridgeline.tools.judge.worker.grading.cases import CaseBook
from ridgeline.tools.judge.worker.inputs.held import Held, numbers_to_hold
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.structure import in_order
from ridgeline.tools.judge.worker.inputs.transforms import silent
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import EARLY, HELD, NOMINAL

_BEYOND = 1e3
"""A place of an output counts where it moves by this x what it moves by beside zeros."""
_LEAST = 0.1
"""Part of the output by which the places that count have to move beside a number: one place in a thousand counts by chance."""
_MORE = 8.0
"""They have to move by this x what they move by beside other numbers, but for the three quarters of these that show most: a
product depends on its first part beside each, and needs no such trial."""
_LEAST_SHOWN = 1 / 4
_CLEARLY_MORE = 2.0
"""A later number has to show so much more: those of the reference come first, beside which a state may rest for good."""
_LEAST_PLACES = 1 / 16
"""Part of the places of an output that may count at all: of fewer nothing is tried."""
_LIMIT_S = 1.0
"""Time for the numbers of one trial, of which `_LEAST_TRIED` are tried in any case."""
_LEAST_TRIED = 4
"""Numbers that are tried however long it takes."""


@dataclass(frozen=True, slots=True)
class _Response:
    """By how much each place of each output moves with the first part of the inputs, and its size, or a usual one's."""

    moves: Tensors
    sizes: tuple[float, ...]

    def beyond(self, other: _Response) -> float:
        """Return by what part of itself an output moves, the one that moves most, at places that stay in the other response."""
        found = 0.0
        for moved, stayed, size in zip(self.moves, other.moves, self.sizes, strict=True):
            counted = torch.where(moved > _BEYOND * stayed, moved, 0.0)
            found = max(found, float(torch.linalg.vector_norm(counted)) / size if size else 0.0)
        return found

    @property
    def leaves_places(self) -> bool:
        """Return whether a part of any output moves by so little that it may count."""
        return any(
            float((moved <= size / moved.numel() ** 0.5 / _BEYOND).double().mean()) >= _LEAST_PLACES
            for moved, size in zip(self.moves, self.sizes, strict=True)
            if moved.numel()
        )


def find_held_numbers(source: SecretSource, book: CaseBook, reference: Reference, tried: Tried) -> None:
    """Note in the secret source which number inputs hold in each trial of HELD; none where no number shows more than 0."""
    source.held.clear()
    if not source.may_be_larger:
        return
    rules = numbers_to_hold(reference.source, reference.scalars)
    search = _Search(source, reference)
    for trial in HELD:

        def look(trial: str = trial) -> str:
            with book.parameters_kept():
                book.place_parameters(book.contents.parameters(NOMINAL[0]))
                if rule := search.best(trial, rules):
                    source.held[trial] = rule
            return ""

        tried(f"{trial}, which number", look)


class _Search:
    def __init__(self, source: SecretSource, reference: Reference) -> None:
        self._source = source
        self._reference = reference
        self._pair = (source.nominal("held 0"), source.nominal("held 1"))
        self._usual: tuple[float, ...] | None = None

    def best(self, trial: str, rules: Sequence[Held]) -> Held | None:
        """Return the rule whose number lets the output depend most on the first part, where it is gone beside zeros."""
        until_s = time.perf_counter() + _LIMIT_S
        zeros = (0.0,) * len(self._pair[0])
        beside_zeros = self._response(trial, zeros)
        if beside_zeros is None or not beside_zeros.leaves_places:
            return None
        best, most, shown = None, 0.0, list[float]()
        by_numbers: dict[tuple[float, ...], Held] = {}
        for rule in rules:
            by_numbers.setdefault(tuple(map(rule, self._pair[0])), rule)
        by_numbers.pop(zeros, None)
        for numbers, rule in by_numbers.items():
            if len(shown) >= _LEAST_TRIED and time.perf_counter() > until_s:
                break
            response = self._response(trial, numbers)
            if response is not None:
                shown.append(response.beyond(beside_zeros))
                if shown[-1] > _CLEARLY_MORE * most:
                    best, most = rule, shown[-1]
        usual = sorted(shown)[int(_LEAST_SHOWN * len(shown))] if shown else 0.0
        return best if most >= max(_LEAST, _MORE * usual) else None

    def _response(self, trial: str, numbers: Sequence[float]) -> _Response | None:
        """Return how the output differs between two first parts; None where the reference refuses the numbers."""
        first, second = self._pair
        try:
            outputs = self._outputs(self._inputs(trial, first, numbers))
            others = self._outputs(self._inputs(trial, second, numbers))
        except ProblemError:
            return None
        if not are_finite((*outputs, *others)) or any(a.shape != b.shape for a, b in zip(outputs, others, strict=True)):
            return None
        moves = tuple((a - b).abs() for a, b in zip(outputs, others, strict=True))
        return _Response(moves, tuple(map(max, map(_size, outputs), self._usual_sizes())))

    def _usual_sizes(self) -> tuple[float, ...]:
        if self._usual is None:
            self._usual = tuple(map(_size, self._outputs(self._pair[0])))
        return self._usual

    def _inputs(self, trial: str, inputs: Tensors, numbers: Sequence[float]) -> Tensors:
        """Return inputs that hold these numbers beyond their first part; those that are never silent are as in any others."""
        ways, share = self._source.ways, 1 / size_of(trial, MOST_STEPS[trial])
        kept = self._pair[0]
        return tuple(
            kept[i]
            if form.is_whole or i in ways.refused
            else in_order(silent(inputs[i], share, at_end=trial in EARLY, number=numbers[i]), form.order)
            for i, form in enumerate(ways.forms)
        )

    def _outputs(self, inputs: Tensors) -> Tensors:
        return tuple(output.double() for output in self._reference.run(inputs))


def _size(output: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(output))
