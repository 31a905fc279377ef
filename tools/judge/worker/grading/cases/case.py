"""One trial: what goes into it, what must come out, and how far outputs are from that."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVarTuple

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.finite import has_finite_sum, is_finite
from ridgeline.tools.judge.worker.grading.cases.made_outputs import MadeOutputs
from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected, expect
from ridgeline.tools.judge.worker.grading.outputs.type_range import within
from ridgeline.tools.judge.worker.grading.outputs.well_conditioned import WellConditioned
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import Errors
from ridgeline.tools.records.vocabulary import PrecisionClass

EachErrors = tuple[Errors, ...]
"""The errors of each output: what one may err says nothing of another."""


Ts = TypeVarTuple("Ts")


@dataclass(slots=True, weakref_slot=True)
class Case:
    """One trial's inputs, its expected outputs, each precision class's own errors on it, and what its sums lose."""

    name: str
    inputs: Tensors
    parameters: dict[str, torch.Tensor]
    expected: tuple[Expected, ...]
    own: dict[PrecisionClass, EachErrors | None] = field(
        default_factory=dict
    )  # None: the class cannot hold these numbers
    sums: dict[PrecisionClass, EachErrors | None] = field(default_factory=dict)  # None: nothing can be told
    conditions: list[float] = field(default_factory=list)  # each output's condition number; empty: not asked for yet
    plain: list[EachErrors | None] = field(default_factory=list)  # what plain sums lose, by way as far as asked for
    neighbours: list[EachErrors | None] = field(default_factory=list)  # PyTorch's errors beside it, as far as asked for
    conditioned: dict[tuple[int, PrecisionClass], WellConditioned | None] = field(
        default_factory=dict
    )  # each output's well-conditioned part, by class as far as asked for; None: nothing can be told
    choices: list[tuple[torch.dtype, ...]] = field(
        default_factory=list
    )  # what the reference chooses among: the type of each choice's numbers; empty: not asked for yet
    made: MadeOutputs = field(default_factory=MadeOutputs)  # with no room; a book's cases share its own
    fits: bool = True  # PyTorch's own output is finite wherever the expected one is: fp16 ends at 65504

    @property
    def size_bytes(self) -> int:
        """Return the memory this case holds."""
        parts = [tensor for part in self.conditioned.values() if part for tensor in (part.chosen, part.want)]
        tensors = [*self.inputs, *self.parameters.values(), *(e.values for e in self.expected), *parts]
        return sum(t.numel() * t.element_size() for t in tensors)

    @property
    def spreads(self) -> tuple[float, ...]:
        """Return the part of each output's norm that its spread is."""
        return tuple(e.spread / e.norm if e.norm else 0.0 for e in self.expected)

    @property
    def is_finite(self) -> bool:
        """Return whether every expected output is finite everywhere, and within its type."""
        return all(e.all_finite for e in self.expected)


def made_once(
    make: Callable[[Reference, Case, *Ts], Tensors | None],
) -> Callable[[Reference, Case, *Ts], Tensors | None]:
    """Let outputs of a case be made once for all that asks for them, as far as its book has room."""

    @functools.wraps(make)
    def once(reference: Reference, case: Case, *args: *Ts) -> Tensors | None:
        return case.made.once(case, (make, args), lambda: make(reference, case, *args))

    return once


def exact_of(native: Tensors) -> Tensors:
    """Return the reference's outputs as `expected_of` needs them: integers and bools, and nothing of floating ones."""
    return tuple(n.new_empty(0) if n.is_floating_point() else n for n in native)


def expected_of(
    reference: Reference, inputs: Tensors, parameters: dict[str, torch.Tensor], exact: Tensors
) -> tuple[Expected, ...]:
    """Return the expected outputs: in float64, or what `exact` has of integers and bools."""
    with torch.no_grad():
        doubles = reference.run_double(inputs, parameters)
    pairs = zip(doubles, exact, strict=True)
    return tuple(expect(d, n.dtype) if d.is_floating_point() and n.is_floating_point() else expect(n) for d, n in pairs)


def errors_of(outputs: Tensors, expected: tuple[Expected, ...]) -> EachErrors | None:
    """Return how far each output is from the expected one, None where one is not finite that should be.

    Of an output whose type cannot hold every value, only what is a number in both counts.
    """
    errors = []
    for output, want in zip(outputs, expected, strict=True):
        found = compare(_numbers_of(output, want) if want.beyond else output, want)
        if found.non_finite is not None:
            return None
        errors.append(found.errors)
    return tuple(errors)


def _numbers_of(output: torch.Tensor, want: Expected) -> torch.Tensor:
    """Return an output in float64, as it is expected where either of the two is no number."""
    values = within(output.double(), want.beyond or output.dtype)
    return torch.where(torch.isfinite(values) & torch.isfinite(want.values), values, want.values)


def numbers_of_either(outputs: Tensors, native: Tensors, expected: tuple[Expected, ...], *, is_strict: bool) -> Tensors:
    """Return outputs, as they are expected where PyTorch's own are no numbers though the expected ones are.

    Its arithmetic went beyond the type there, and says nothing. Unless `is_strict`, so did an output's that is no number.
    """
    given = []
    for output, own, want in zip(outputs, native, expected, strict=True):
        if not output.is_floating_point():
            given.append(output)
            continue
        lost = ~torch.isfinite(own) if is_strict else ~(torch.isfinite(own) & torch.isfinite(output))
        given.append(torch.where(lost & torch.isfinite(want.values), want.values.to(output.dtype), output))
    return tuple(given)


def with_expected_numbers(outputs: Tensors, expected: tuple[Expected, ...]) -> Tensors:
    """Return outputs, in float64 and as they are expected wherever both are finite; whole numbers and bools wholly so."""
    return tuple(
        want.values
        if want.is_exact
        else torch.where(torch.isfinite(output) & torch.isfinite(want.values), want.values, output.double())
        for output, want in zip(outputs, expected, strict=True)
    )


def fits_type(outputs: Tensors, expected: tuple[Expected, ...]) -> bool:
    """Return whether the outputs' type holds the expected values, and outputs are finite wherever those are."""
    if any(e.beyond or not math.isfinite(e.norm) for e in expected):
        return False  # float64 holds the values and not their squares: every error would be none
    pairs = [(o, e) for o, e in zip(outputs, expected, strict=True) if o.is_floating_point()]
    return all(has_finite_sum(o) or bool((torch.isfinite(o) | ~_is_finite(e)).all()) for o, e in pairs)


def non_finite_of(case: Case) -> Tensors:
    """Return where each expected output is NaN or infinite; one word for an output that nowhere is."""
    return tuple(~_is_finite(e) for e in case.expected)


def are_finite(outputs: Tensors) -> bool:
    """Return whether every floating output is finite everywhere."""
    return all(is_finite(o) for o in outputs if o.is_floating_point())


def _is_finite(expected: Expected) -> torch.Tensor:
    """Return which elements are finite; one word where all are."""
    values = expected.values
    return torch.ones((), dtype=torch.bool, device=values.device) if expected.all_finite else torch.isfinite(values)
