"""Checks that a reference can be judged: equal results for equal inputs, one output form, no side effects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch

from ridgeline.problems.own_state import changes_attribute, changes_own
from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors, dtype_name
from ridgeline.tools.judge.worker.domain.in_double import settle_double
from ridgeline.tools.judge.worker.domain.own_attributes import OwnAttributes
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.modelnew.tensor_bits import equal_bits
from ridgeline.tools.records.problem import Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role

_RANDOM = " (dropout that is always on?): it runs in eval() mode, so tie what is random to `self.training`"


def check_usable(reference: Reference, *, in_double: bool = True) -> None:
    """Run the reference twice on the same inputs, and once in float64 unless nobody wants that.

    Raises:
        BadReferenceError: it changes its own state, its two results differ beyond rounding, other inputs give other shapes
            or numbers, or it computes something else in float64.
    """
    inputs = reference.draw_inputs(1)
    _check_form("get_inputs()", inputs, reference.signature, Role.INPUT)
    before = tuple(t.clone() for t in inputs)
    attributes = OwnAttributes(reference.model)
    state = {n: t.clone() for n, t in reference.named_tensors().items()}
    first = tuple(t.clone() for t in reference.run(inputs))
    _check_form("forward()", first, reference.signature, Role.OUTPUT)
    if not all(equal_bits(a, b) for a, b in zip(inputs, before, strict=True)):
        raise BadReferenceError.of_text(
            "forward() works in place on an input for some values only: a kernel takes one form"
        )
    changed = next((n for n, t in reference.named_tensors().items() if not equal_bits(t, state[n])), None)
    if changed is not None:
        raise BadReferenceError.of_text(changes_own(changed))
    if not _agree(first, reference.run(inputs)):
        cause = attributes.cause(lambda: _agree(first, reference.run(inputs)))
        random = f"forward() is nondeterministic: two runs on the same inputs differ{_RANDOM}"
        raise BadReferenceError.of_text(changes_attribute(cause) if cause else random)
    reference.constant_results.refuse_varying()
    refuse_empty(tuple(t.shape) for t in first)
    if all(t.is_floating_point() and not bool(torch.isfinite(t).any()) for t in first):
        raise BadReferenceError.of_text("forward() gives nothing but NaN or infinity for get_inputs()")
    if in_double:
        settle_double(reference, inputs, first)


def refuse_empty(shapes: Iterable[Sequence[int]]) -> None:
    """Refuse a reference by the shapes of its results.

    Raises:
        BadReferenceError: none of them has an element.
    """
    if not any(math.prod(shape) for shape in shapes):
        raise BadReferenceError.of_text("forward() gives only empty tensors: a kernel would have nothing to do")


def _check_form(what: str, tensors: Tensors, signature: Signature, role: Role) -> None:
    specs = [s for s in signature.with_role(role) if s.kind is ArgKind.TENSOR]
    if len(specs) != len(tensors):
        raise BadReferenceError.of_text(
            f"{what} gives {len(specs)} tensors and then {len(tensors)}: a kernel takes one form"
        )
    for spec, tensor in zip(specs, tensors, strict=True):
        one, two = f"{spec.dtype} {spec.shape}", f"{dtype_name(tensor)} {tuple(tensor.shape)}"
        if one != two:
            raise BadReferenceError.of_text(
                f"{what} gives {one} and then {two}: a kernel takes one form, for any values"
            )


def _agree(first: Tensors, second: Tensors) -> bool:
    return all(_is_near(one, two) for one, two in zip(first, second, strict=True))


def _is_near(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, two)
    rounding = 64 * torch.finfo(one.dtype).eps
    return torch.allclose(one.double(), two.double(), rtol=rounding, atol=rounding, equal_nan=True)
