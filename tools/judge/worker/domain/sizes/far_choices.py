"""The trial of far choices: arguments beside which what is chosen depends on first and last parts of the inputs.

A choice shows little of what it is made by. Where a state forgets, none of sixteen choices may change with its first steps left
out; where it lasts, it is small beside what it is compared with, or alike in all rows. So changes that other trials make to
parameters and scalars are tried beside nominal inputs and larger ones, and that is taken by which most choices change.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Scalar, Tensors
from ridgeline.tools.judge.worker.domain.sizes.first_parts import share_shown
from ridgeline.tools.judge.worker.domain.sizes.trial_sizes import MOST_STEPS, size_of
from ridgeline.tools.judge.worker.domain.sizes.usual_trial import Arguments
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.trial_changes import Far
from ridgeline.tools.judge.worker.inputs.values.structure import in_order
from ridgeline.tools.judge.worker.inputs.values.transforms import silent
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.records.trial_names import (
    FAR_CHOICES,
    LARGE_MATRICES,
    LARGE_SCALARS,
    LARGE_VECTORS,
    MOVED,
    NOMINAL,
    SMALL_PARAMETERS,
    SMALL_SCALARS,
)

_KINDS = (*MOVED, LARGE_VECTORS, LARGE_MATRICES, SMALL_PARAMETERS, LARGE_SCALARS, SMALL_SCALARS)
"""Trials whose parameters and scalars are tried."""
_USUAL, _LARGER, _LARGEST = (MOST_STEPS[FAR_CHOICES] * n // 2 for n in range(3))
"""Steps of the inputs' size: each kind is looked at beside the first two, the best of them beside the last too."""
_LIMIT_S = 5.0
"""After so long no further kind is looked at: each takes three runs."""
_PART = 3 / 4
"""Part of every dimension that the first part is, and the last one."""
_SHOWN = 1 / 16
"""Where so many of an output's choices change in a usual trial, it shows far parts anyhow; of fewer some show little."""
_MORE = 1 / 16
"""So many more than in a usual trial have to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A change of parameters or scalars, and the steps of the inputs' size beside it."""

    far: Far
    steps: int


class FarChoices:
    """Finds the arguments that the trial of far choices may have."""

    def __init__(self, book: CaseBook, source: SecretSource, outputs: Callable[[Arguments], Tensors]) -> None:
        """Look at nothing yet; `outputs` calls the reference."""
        self._book = book
        self._source = source
        self._outputs = outputs

    def options(
        self, taken: Collection[str], given: tuple[Scalar, ...], *, seen: Callable[[str, Callable[[], str]], str]
    ) -> list[Option]:
        """Return what shows more than usual arguments, what shows most first.

        Args:
            taken: the trials of other sizes that there are.
            given: the reference's scalars.
            seen: tries a look at the reference, which returns why nothing is found.
        """
        found: list[Option] = []

        def look() -> str:
            found.extend(self._options(taken, given))
            return ""

        seen(f"{FAR_CHOICES}, which arguments", look)
        return found

    def _options(self, taken: Collection[str], given: tuple[Scalar, ...]) -> list[Option]:
        kinds = [kind for kind in _KINDS if kind in taken]
        if not kinds or not self._free:
            return []
        scalars = {kind: self._book.changes.scalars.get(kind, given) for kind in (*kinds, NOMINAL[0])}
        others = self._source.nominal(f"{FAR_CHOICES}:other")
        usual = self._shown(NOMINAL[0], _USUAL, scalars, others)
        if all(shown >= _SHOWN for shown in usual):
            return []

        def more(kind: str, steps: int) -> float:
            pairs = zip(self._shown(kind, steps, scalars, others), usual, strict=False)
            return max((shown - was for shown, was in pairs if was < _SHOWN), default=0.0)

        spent, found = OwnTime(), dict[tuple[str, int], float]()
        for steps, kind in itertools.product((_LARGER, _USUAL), kinds):
            if found and spent.is_beyond(_LIMIT_S):
                break
            found[kind, steps] = more(kind, steps)
        best = max(found, key=found.__getitem__)[0]
        found[best, _LARGEST] = more(best, _LARGEST)
        best_first = sorted((each for each in found if found[each] >= _MORE), key=found.__getitem__, reverse=True)
        return [Option(far=Far(kind, scalars[kind]), steps=steps) for kind, steps in best_first]

    @functools.cached_property
    def _free(self) -> frozenset[int]:
        """The inputs whose parts may be another draw's: numbers in no order that any other may take the place of."""
        return frozenset((*self._source.may_be_larger, *self._source.lifts))

    def _shown(
        self, kind: str, steps: int, scalars: Mapping[str, tuple[Scalar, ...]], drawn: Tensors
    ) -> tuple[float, ...]:
        """Return the share of each output's choices that the first part and the last part each change; none: it is refused.

        The parts are those of inputs that are drawn beside a trial's own.
        """
        factor = size_of(FAR_CHOICES, steps)
        inputs, parameters = self._book.contents.far(Far(kind, scalars[kind]), FAR_CHOICES, factor)
        others = self._source.times(drawn, factor)
        arguments = Arguments(inputs=inputs, parameters=parameters, scalars=scalars[kind])
        try:
            usual = self._outputs(arguments)
            parts = [
                self._outputs(replace(arguments, inputs=self._with_part(inputs, others, at_end=end)))
                for end in (False, True)
            ]
        except ProblemError:
            return ()
        return tuple(map(_least_changed, usual, *parts))

    def _with_part(self, inputs: Tensors, others: Tensors, *, at_end: bool) -> Tensors:
        """Return inputs with a first part of others in place of their own, or a last one."""
        orders = [form.order for form in self._source.ways.forms]
        return tuple(
            in_order(torch.where(_is_in_part(t, at_end=at_end), others[i], t), orders[i]) if i in self._free else t
            for i, t in enumerate(inputs)
        )


def _is_in_part(tensor: torch.Tensor, *, at_end: bool) -> torch.Tensor:
    ones = torch.ones(tensor.shape, device=tensor.device)
    return silent(ones, _PART, at_end=at_end) > 0


def _least_changed(usual: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the share of an output that is another in each of two: the smaller one."""
    return min(_changed(usual, one), _changed(usual, other))


def _changed(usual: torch.Tensor, other: torch.Tensor) -> float:
    """Return the share of an output that is another: of whole numbers and bools each counts, else rows."""
    if usual.shape != other.shape or not usual.numel():
        return 0.0
    if not usual.is_floating_point():
        return float((usual != other).double().mean())
    return share_shown(usual.double(), other.double())
