"""A precision class's own error on a trial: the reference's operands rounded to the class, then computed in float64.

Beside it, what sums lose: operands that differ by a few units of fp32, computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.cases.case import Case, EachErrors, errors_of, made_once
from ridgeline.tools.judge.worker.grading.cases.vector_signs import signed_as
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import SUM_ERROR, Errors
from ridgeline.tools.records.vocabulary import PrecisionClass

_ROUNDED_TO = {
    PrecisionClass.FP16: torch.float16,
    PrecisionClass.BF16: torch.bfloat16,
    PrecisionClass.FP8: torch.float8_e4m3fn,
}
Change = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Makes of an output, and of what is expected, the one that counts."""
_CHOICE_SEED = 1  # which operands are smaller: any choice does, and the same one gives the same limits
_CONDITION_DRAWS = 8  # one draw may be next to nothing itself
TF32_LAST_BIT = 2.0**-11
_TF32_DROPPED_BITS = 13  # tf32 keeps 10 of float32's 23 mantissa bits


def errors_of_class(reference: Reference, case: Case, precision: PrecisionClass) -> EachErrors | None:
    """Return what a class's arithmetic does to each output of a case; None when the class cannot hold these numbers."""
    if precision is PrecisionClass.FP64:
        return double_errors(reference, case)
    return rounding_errors(reference, case, precision)


def rounding_errors(
    reference: Reference, case: Case, precision: PrecisionClass, change: Change | None = None
) -> EachErrors | None:
    """Return what rounding to a class does to each output of a case; None when the class cannot hold these numbers.

    Raises:
        BadReferenceError: the reference refuses rounded operands.
    """
    outputs = rounded_outputs(reference, case, precision)
    if change is not None:
        outputs = tuple(change(o, e.values) for o, e in zip(outputs, case.expected, strict=True))
    return floating_errors(outputs, case)


def rounded_outputs(reference: Reference, case: Case, precision: PrecisionClass) -> Tensors:
    """Return a case's outputs in float64, of operands rounded to a class, and stored in it where it is a stored one."""
    inputs = tuple(rounded(t, precision) for t in case.inputs)
    parameters = {n: rounded(t, precision) for n, t in case.parameters.items()}
    with torch.no_grad(), signed_as(reference, case.expected):
        outputs = reference.run_double(inputs, parameters)
    stored = precision in _ROUNDED_TO
    return tuple(rounded(o, precision) if stored else o for o in outputs)


def sum_errors(reference: Reference, case: Case, relative: float) -> EachErrors | None:
    """Return what operands that differ by twice this part of themselves do to a case; None where nothing can be told."""
    outputs = moved_outputs(reference, case, relative, _CHOICE_SEED)
    return None if outputs is None else floating_errors(outputs, case)


def condition_numbers(reference: Reference, case: Case) -> list[float]:
    """Return each output's relative change over that of its operands, the root mean square of several draws; at least 1.

    Integers and bools have 1, and so has all of which nothing can be told.
    """
    relative = SUM_ERROR[PrecisionClass.FP32]
    squares: list[list[float]] = [[] for _ in case.expected]
    for rng_seed in range(_CONDITION_DRAWS):
        outputs = moved_outputs(reference, case, relative, rng_seed)
        errors = None if outputs is None else floating_errors(outputs, case)
        if errors is None:
            return [1.0] * len(case.expected)
        for found, each in zip(squares, errors, strict=True):
            found.append((each.overall / relative) ** 2)
    return [max(1.0, math.sqrt(sum(found) / len(found))) for found in squares]


def double_errors(reference: Reference, case: Case) -> EachErrors | None:
    """Return what float64 itself may err: what operands and outputs of which about half are a little smaller do to a case.

    The expected values are float64's own, so no other run tells. Where the operands are whole numbers, what the last sum
    loses shows in the outputs alone.
    """
    relative = SUM_ERROR[PrecisionClass.FP64]
    generator = torch.Generator(case.inputs[0].device).manual_seed(_CHOICE_SEED)
    outputs = tuple(e.values if e.is_exact else _moved(e.values, relative, generator) for e in case.expected)
    by_outputs = floating_errors(outputs, case)
    return None if by_outputs is None else worst_of(by_outputs, sum_errors(reference, case, relative))


@made_once
def moved_outputs(reference: Reference, case: Case, relative: float, rng_seed: int) -> Tensors | None:
    """Return a case's outputs in float64, of operands of which about half differ by twice this part of themselves.

    None where the reference does not compute in float64, or where it gives no number so close to the case's own.
    """
    try:
        with torch.no_grad(), signed_as(reference, case.expected):
            return reference.in_double(*moved_operands(case, relative, rng_seed))
    except BadReferenceError:
        return None


def moved_operands(case: Case, relative: float, rng_seed: int) -> tuple[Tensors, dict[str, torch.Tensor]]:
    """Return a case's inputs and parameters in float64, about half of them nearer to zero by twice this part."""
    generator = torch.Generator(case.inputs[0].device).manual_seed(rng_seed)
    inputs = tuple(_moved(t, relative, generator) for t in case.inputs)
    return inputs, {n: _moved(t, relative, generator) for n, t in case.parameters.items()}


def moved_in_type(
    inputs: Tensors, parameters: dict[str, torch.Tensor], *, at_least: float = 0.0
) -> tuple[Tensors, dict[str, torch.Tensor]]:
    """Return operands in their own types, about half of them nearer to zero by their type's last bit, or by this part."""
    operands = (*inputs, *parameters.values())
    generator = torch.Generator(operands[0].device if operands else None).manual_seed(_CHOICE_SEED)

    def moved_one(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        relative = max(at_least, torch.finfo(tensor.dtype).eps) / 2
        return _moved(tensor, relative, generator).to(tensor.dtype)

    return tuple(map(moved_one, inputs)), {n: moved_one(t) for n, t in parameters.items()}


def _moved(tensor: torch.Tensor, relative: float, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor in float64 with about half of its values nearer to zero by twice this part of themselves."""
    # float32 holds 1 - 2^-23 and no number between it and 1
    wide = torch.float32 if relative >= 2.0**-24 else torch.float64

    def half_of(values: torch.Tensor) -> torch.Tensor:
        ones = torch.randint(2, values.shape, generator=generator, dtype=torch.uint8, device=generator.device)
        return ones.to(values.device, wide)  # a fifth of the time that bernoulli_ takes

    return moved(tensor, relative, half_of)


def moved(tensor: torch.Tensor, relative: float, chosen: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return a tensor in float64 with the chosen values nearer to zero by twice this part of themselves.

    None is further from it: a probability above 1 is refused, on a GPU by an assert that costs the judge its process.
    Whole numbers stay as they are: sums of them lose nothing, and what is compared with one (a mask) would jump.
    """
    if not tensor.is_floating_point():
        return tensor
    values = tensor.to(torch.float64, copy=True)  # the case's own may be float64 already
    if is_whole(values):
        return values
    return values.mul_(chosen(values).mul_(-2 * relative).add_(1))


def floating_errors(outputs: Tensors, case: Case) -> EachErrors | None:
    """Return the errors of each output; integers and bools count as right."""
    floating = [(o, e) for o, e in zip(outputs, case.expected, strict=True) if not e.is_exact]
    found = errors_of(tuple(o for o, _ in floating), tuple(e for _, e in floating))
    if found is None:
        return None
    errors = iter(found)
    return tuple(Errors(overall=0.0) if e.is_exact else next(errors) for e in case.expected)


def worst_of(errors: EachErrors, *others: EachErrors | None) -> EachErrors:
    """Return the worst of each output's errors; None counts for nothing."""
    for found in others:
        if found is not None:
            errors = tuple(worst.merged(other) for worst, other in zip(errors, found, strict=True))
    return errors


def rounded(tensor: torch.Tensor, precision: PrecisionClass) -> torch.Tensor:
    """Return a tensor of the same type whose values a class can hold; integers and bools as they are."""
    if not tensor.is_floating_point() or precision is PrecisionClass.FP64:
        return tensor
    if precision is PrecisionClass.FP32:
        return tensor.float().to(tensor.dtype)
    if precision is PrecisionClass.TF32:
        bits = tensor.float().contiguous().view(torch.int32)
        half = (1 << (_TF32_DROPPED_BITS - 1)) - 1 + ((bits >> _TF32_DROPPED_BITS) & 1)  # to nearest, ties to even
        kept = (bits + half) & ~((1 << _TF32_DROPPED_BITS) - 1)
        return kept.view(torch.float32).to(tensor.dtype).view_as(tensor)
    held = tensor.to(_ROUNDED_TO[precision]).to(tensor.dtype)
    return held.where(~tensor.isinf(), tensor) if precision is PrecisionClass.FP8 else held  # e4m3 has no infinity


def is_whole(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds whole numbers alone, of whatever type, and NaN; the first mostly tell that it does not."""
    parts = (tensor[:1], tensor) if tensor.dim() else (tensor,)
    return not tensor.is_floating_point() or all(bool(((part == part.round()) | part.isnan()).all()) for part in parts)
