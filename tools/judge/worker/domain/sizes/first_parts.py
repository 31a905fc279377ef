"""The responses of a reference's output to a first part of its inputs, or a last one, beside others that are silent.

The reference is called with two different parts: where an output moves, it depends on them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.sizes.trial_sizes import MOST_STEPS, size_of
from ridgeline.tools.judge.worker.grading.cases.case import are_finite
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.values.structure import in_order
from ridgeline.tools.judge.worker.inputs.values.transforms import silent
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import SILENT_LATE

_BEYOND = 1e3
"""A place of an output counts where it moves by this x what it moves by beside zeros."""
_LEAST_PLACES = 1 / 16
"""Part of the places of an output that may count at all: of fewer nothing is tried."""
_SHOWN = 1 / 8
"""A row of an output shows a part of the inputs where it moves by this part of itself."""


@dataclass(frozen=True, slots=True)
class Response:
    """By how much each place of each output moves with a part of the inputs, and its size, or a usual one's."""

    moves: Tensors
    sizes: tuple[float, ...]
    rows_shown: float
    """The share of an output's rows, the largest of all outputs', that move by a good part of themselves."""

    def beyond(self, other: Response) -> float:
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


class FirstParts:
    """Calls a reference with two different first, or last, parts of its inputs; parameters are those that are placed."""

    def __init__(self, source: SecretSource, reference: Reference) -> None:
        """Draw nothing yet."""
        self.reference = reference
        self._source = source
        self._ways = source.ways
        self._usual_sizes: tuple[float, ...] | None = None
        self._beside_zeros: dict[bool, Response | None] = {}

    @functools.cached_property
    def usual(self) -> Tensors:
        """The inputs that hold the first of the two parts."""
        return self._source.nominal("held 0")

    @functools.cached_property
    def _other(self) -> Tensors:
        return self._source.nominal("held 1")

    @property
    def zeros(self) -> tuple[float, ...]:
        """Return the number of each input that is silent."""
        return (0.0,) * len(self.usual)

    def beside_zeros(self, *, is_late: bool) -> Response | None:
        """Return how the output differs between two parts where all else is zero; asked for once."""
        if is_late not in self._beside_zeros:
            self._beside_zeros[is_late] = self.beside(self.zeros, is_late=is_late)
        return self._beside_zeros[is_late]

    def beside(self, numbers: Sequence[float], *, is_late: bool, is_faint: bool = False) -> Response | None:
        """Return how the output differs between two parts, a first one where the silence is late.

        Beyond them inputs hold these numbers, or are faint. None where the reference refuses that.
        """
        beyond = self._silent(numbers, is_late=is_late, is_faint=is_faint)
        try:
            outputs, others = (self._outputs(beyond(inputs)) for inputs in (self.usual, self._other))
        except ProblemError:
            return None
        if not are_finite((*outputs, *others)) or any(a.shape != b.shape for a, b in zip(outputs, others, strict=True)):
            return None
        if self._usual_sizes is None:
            self._usual_sizes = tuple(map(_size, self._outputs(self.usual)))
        return Response(
            moves=tuple((a - b).abs() for a, b in zip(outputs, others, strict=True)),
            sizes=tuple(map(max, map(_size, outputs), self._usual_sizes)),
            rows_shown=max(map(share_shown, outputs, others), default=0.0),
        )

    def _silent(self, numbers: Sequence[float], *, is_late: bool, is_faint: bool) -> Callable[[Tensors], Tensors]:
        """Return what makes inputs silent beyond their part, all alike; those that are never silent are as in any others."""
        share, forms = 1 / size_of(SILENT_LATE, MOST_STEPS[SILENT_LATE]), self._ways.forms
        quiet = functools.partial(silent, share=share, at_end=not is_late)

        def beyond(inputs: Tensors) -> Tensors:
            return tuple(
                usual
                if forms[i].is_whole or i in self._ways.refused
                else in_order(
                    torch.where(quiet(torch.ones_like(t)) > 0, t, quiet(usual, number=numbers[i], is_faint=is_faint)),
                    forms[i].order,
                )
                for i, (t, usual) in enumerate(zip(inputs, self.usual, strict=True))
            )

        return beyond

    def _outputs(self, inputs: Tensors) -> Tensors:
        return tuple(output.double() for output in self.reference.run(inputs))


def _size(output: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(output))


def share_shown(output: torch.Tensor, other: torch.Tensor) -> float:
    """Return the share of an output's rows that differ by a good part of themselves."""
    if not output.numel():
        return 0.0
    first, second = _rows(output), _rows(other)
    return float((_norms(first - second) > _SHOWN * torch.maximum(_norms(first), _norms(second))).double().mean())


def _rows(output: torch.Tensor) -> torch.Tensor:
    """Return the rows of an output, its numbers where it has one dimension."""
    return output.reshape(-1, output.shape[-1] if output.dim() > 1 else 1)


def _norms(rows: torch.Tensor) -> torch.Tensor:
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1)
    return norms
