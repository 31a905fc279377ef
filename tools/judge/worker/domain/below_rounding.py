"""Trials whose output tells of what lies below rounding: vectors of what a matrix has no singular value for, or an equal one.

Any basis is right there, and what a reference makes of it is another one in every kernel. Operands that are zeros, held or
whole show nothing of that where they stay as they are, since PyTorch takes the same basis of zeros in each type. So all numbers
are moved by last bits, and zeros become numbers as small as the last bits of the others.
"""

from __future__ import annotations

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.conditioning import WORSE
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.cases.class_errors import floating_errors
from ridgeline.tools.judge.worker.grading.cases.vector_signs import gives_vectors, signed_as, signed_case
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import ALONE, NOMINAL, TWEAKED

BELOW_ROUNDING = "its output would depend on what lies below rounding"
_NOISE = 2.0**-22
"""Part of itself by which a number is moved at most, and of its tensor's root mean square that zeros become: two last bits."""
_DRAWS = 2
"""Draws of it: a vector may keep its sign by chance."""
_SHARE = 1 / 4
"""Part of its size, and of the output's, by which no element may move so."""


def objection_below_rounding(reference: Reference, book: CaseBook, case: Case) -> str:
    """Return why a case is refused whose vectors rounding decides on, and a nominal one's hardly; "" where it is not.

    What differs from a nominal trial in another draw alone is not looked at: each look takes two runs.
    """
    if not gives_vectors(reference.source) or case.name in TWEAKED or case.name.startswith(ALONE):
        return ""
    found = _moved_by_noise(reference, book, case)
    if found <= _SHARE:
        return ""
    usual = _moved_by_noise(reference, book, book.case(NOMINAL[0]))
    return "" if found <= WORSE * usual else BELOW_ROUNDING


def _moved_by_noise(reference: Reference, book: CaseBook, case: Case) -> float:
    """Return by what part of itself last bits of all operands move an element at most; 0 where nothing can be told."""
    with book.scalars_of(case.name):
        return max(_moved_by_draw(reference, case, draw) for draw in range(_DRAWS))


def _moved_by_draw(reference: Reference, case: Case, draw: int) -> float:
    """Return that of one draw, also as it is told of an output that has these vectors: of equal values any basis is right."""
    generator = torch.Generator(case.inputs[0].device).manual_seed(draw)
    inputs = tuple(_noisy(t, generator) for t in case.inputs)
    parameters = {n: _noisy(t, generator) for n, t in case.parameters.items()}
    try:
        with torch.no_grad(), signed_as(reference, case.expected):
            outputs = reference.in_double(inputs, parameters)
    except BadReferenceError:
        return 0.0
    moved = _worst_of(outputs, case)
    signed = None if outputs is None or moved <= _SHARE else signed_case(reference, case, outputs)
    return moved if signed is None else min(moved, _worst_of(outputs, signed))


def _worst_of(outputs: Tensors | None, case: Case) -> float:
    errors = None if outputs is None else floating_errors(outputs, case)
    return max((each.worst_element for each in errors or ()), default=0.0)


def _noisy(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor in float64 whose numbers are all moved by last bits; of its own sign where it has one."""
    if not tensor.is_floating_point():
        return tensor
    values = tensor.double()
    noise = torch.rand(values.shape, generator=generator, device=generator.device, dtype=torch.float64).to(values)
    noise = noise if bool((values >= 0).all()) else noise.mul_(2).sub_(1)
    size = values.abs().where(values != 0, values.square().mean().sqrt())
    return noise.mul_(_NOISE).mul_(size).add_(values)
