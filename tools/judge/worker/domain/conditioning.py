"""The conditioning of a trial's output: by how much operands rounded to tf32 move it, and what its own type errs."""

from __future__ import annotations

from dataclasses import replace

import torch

from ridgeline.tools.judge.worker.grading.cases.case import Case, EachErrors
from ridgeline.tools.judge.worker.grading.cases.class_errors import Change, rounding_errors
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import Errors, gate_for
from ridgeline.tools.records.vocabulary import PrecisionClass

WORSE = 4.0
"""A trial whose errors are at most this x a nominal trial's is as good as that one."""
ROWS_WORSE = 16.0
"""Single rows may be so much worse than a usual trial's: the edge reaches few of them first, and their limits are wide."""
ROOM = 1 / 4
"""Part of fp32's gates by which the reference's own type may be off: kernels that round otherwise have the rest."""
_LEAST = 2.0**-100
"""Numbers below it say little: from 2^-126 on kernels may flush what they compute to zero."""
LEFT_TO_ROUNDING = "its output would be left to rounding"

BothErrors = tuple[EachErrors | None, EachErrors | None]
"""What operands rounded to tf32 do to a case, and what its own type errs."""


def errors_by_rounding(reference: Reference, case: Case, change: Change | None = None) -> BothErrors:
    """Return what operands rounded to tf32 do to a case, and its own type; None for what gives no number.

    Raises:
        BadReferenceError: the reference refuses rounded operands.
    """
    return rounding_errors(reference, case, PrecisionClass.TF32, change), case.own.get(PrecisionClass.FP32)


def is_as_good(found: BothErrors, usual: BothErrors, *, is_held: bool) -> bool:
    """Return whether errors are about as small as a usual trial's; those of its own type may be far within fp32's gates.

    Numbers that are held do not count where they are rounded: each step would move a state that lasts to the same side.
    """
    (by_tf32, by_type), (usual_by_tf32, usual_by_type) = found, usual
    room = (room_of(PrecisionClass.FP32, ROOM),) * len(by_type or ())
    return (is_held or are_within(by_tf32, usual_by_tf32, WORSE, of_rows=ROWS_WORSE)) and (
        are_within(by_type, room, 1.0) or are_within(by_type, usual_by_type, WORSE, of_rows=ROWS_WORSE)
    )


def are_within(
    errors: EachErrors | None, limits: EachErrors | None, factor: float, *, of_rows: float | None = None
) -> bool:
    """Return whether each output's errors are at most this factor times its limits; another one may be that of single rows."""
    if errors is None or limits is None:
        return False
    pairs = zip(errors, limits, strict=True)
    return all(_is_within(found, limit, factor, of_rows or factor) for found, limit in pairs)


def _is_within(errors: Errors, limit: Errors, factor: float, of_rows: float) -> bool:
    return (
        errors.overall <= factor * limit.overall
        and errors.worst_row <= of_rows * limit.worst_row
        and errors.worst_element <= of_rows * limit.worst_element
    )


def room_of(precision: PrecisionClass, factor: float) -> Errors:
    """Return the nominal gates of a class times a factor."""
    gate = gate_for(precision, Errors(overall=0.0))
    return Errors(overall=factor * gate.overall, worst_row=factor * gate.row, worst_element=factor * gate.element)


def is_next_to_nothing(expected: Expected, dtype: torch.dtype) -> bool:
    """Return whether an output that is not zero is of numbers that its type hardly holds, or that are flushed to zero."""
    if expected.is_exact:
        return False
    return 0 < expected.rms < max(_LEAST, torch.finfo(dtype).tiny)


def beside_own_spread(errors: EachErrors | None, case: Case) -> EachErrors | None:
    """Return errors as they count beside each output's own spread, not beside a usual one."""
    if errors is None:
        return None
    pairs = zip(errors, case.expected, strict=True)
    return tuple(replace(e, overall=e.overall * want.scale / want.own_scale) for e, want in pairs)
