"""Neighbours of a trial's operands, with other last bits: what PyTorch's own arithmetic loses, against float64 there.

One run may lose little by chance. Neither run's operands are the trial's, so how far these move an output does not count. No
operand gets more bits than its tensor has: products of few bits are exact for every kernel. Constants that the reference makes
have other last bits in its own type alone: how far those move an output is what their roundings cost.
"""

from __future__ import annotations

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.cases.case import Case, EachErrors, made_once
from ridgeline.tools.judge.worker.grading.cases.class_errors import floating_errors, is_whole
from ridgeline.tools.judge.worker.grading.cases.vector_signs import signed_as
from ridgeline.tools.judge.worker.grading.excuses.moved_constants import with_other_constants
from ridgeline.tools.judge.worker.grading.excuses.random_rounding import shares_of
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import BEYOND_SUMS, LOSSY_SHARE, Errors, Gate
from ridgeline.tools.records.vocabulary import PrecisionClass

_MOST_ZERO_BITS = 13  # as many as tf32 drops


def is_asked_for(case: Case, errors: Errors, gate: Gate) -> bool:
    """Return whether errors are near a limit, but not far beyond it, of which PyTorch's own are a share in any output.

    So are those on neighbouring operands that were drawn: the limit is a multiple of these. One is drawn in any case, since
    of constants that are made in float32 in each run PyTorch's own error shows nothing.
    """
    if not gate.is_near(errors) or errors.overall > BEYOND_SUMS * gate.overall:
        return False
    found = [own for own in (case.own.get(PrecisionClass.FP32), *case.neighbours) if own]
    return not case.neighbours or any(
        use.factor > LOSSY_SHARE for own in found for each in own for use in gate.uses(each)
    )


def neighbour_errors(reference: Reference, case: Case, draw: int) -> EachErrors | None:
    """Return PyTorch's errors on a draw of neighbouring operands, computed once; None when nothing can be told of it."""
    if draw == len(case.neighbours):
        outputs = neighbour_outputs(reference, case, draw)
        case.neighbours.append(None if outputs is None else floating_errors(outputs, case))
    return case.neighbours[draw]


@made_once
def neighbour_outputs(reference: Reference, case: Case, rng_seed: int) -> Tensors | None:
    """Return a case's outputs, each off by what PyTorch errs on neighbouring operands; None where nothing can be told.

    Integers and bools are the expected ones.
    """
    are_whole = all(map(is_whole, case.inputs))
    inputs = tuple(_moved(t, rng_seed, count, moves_whole=are_whole) for count, t in enumerate(case.inputs))
    parameters = {n: _moved(t, rng_seed, ~count) for count, (n, t) in enumerate(case.parameters.items())}
    given = zip((*inputs, *parameters.values()), (*case.inputs, *case.parameters.values()), strict=True)
    are_moved = any(moved is not tensor for moved, tensor in given)
    try:
        with torch.no_grad(), signed_as(reference, case.expected):
            native = with_other_constants(reference, inputs, parameters, rng_seed)
            if native is None and are_moved:
                native = reference.in_own_type(inputs, parameters)
            exact = None if native is None else reference.in_double(inputs, parameters)
            beside = with_other_constants(reference, case.inputs, case.parameters, rng_seed) if are_whole else None
    except BadReferenceError:
        return None
    if exact is None or native is None:
        return None
    off = [own.double() - double.double() for own, double in zip(native, exact, strict=True)]
    for index, (own, want) in enumerate(zip(case.own.get(PrecisionClass.FP32) or (), case.expected, strict=False)):
        if own.is_none and are_whole and not want.is_exact:
            off[index] = beside[index].double() - want.values if beside else torch.zeros_like(want.values)
    return tuple(e.values if e.is_exact else e.values + each for e, each in zip(case.expected, off, strict=True))


def _moved(tensor: torch.Tensor, rng_seed: int, count: int, *, moves_whole: bool = False) -> torch.Tensor:
    """Return a tensor in float32 with about half of its numbers nearer to zero by the last bit that any has.

    Equal numbers stay equal, and whole numbers whole, as masks and counts are, unless it `moves_whole` ones but masks: of
    these each for itself, since few are different.
    """
    are_whole = tensor.dtype is torch.float32 and is_whole(tensor)
    if tensor.dtype is not torch.float32 or (are_whole and not (moves_whole and bool((tensor != tensor**2).any()))):
        return tensor
    bits = tensor.contiguous().view(torch.int32)
    zeros = 0
    while zeros < _MOST_ZERO_BITS and not bool((bits >> zeros & 1).any()):
        zeros += 1
    if are_whole:
        generator = torch.Generator(tensor.device).manual_seed(rng_seed << 8 | count & 0xFF)
        chosen = torch.rand(tensor.shape, generator=generator, device=tensor.device).lt(0.5) & (tensor != 0)
    else:
        chosen = shares_of(tensor.double(), rng_seed, count & 0xFF).lt(0.5) & (
            tensor.abs() >= torch.finfo(torch.float32).tiny * 2
        )
        chosen &= tensor != tensor.round()
    return torch.where(chosen, bits - (1 << zeros), bits).view(torch.float32).reshape(tensor.shape)
