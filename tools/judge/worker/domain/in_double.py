"""A check that float64 computes what the reference computes: what it gives there is what every output is compared with.

Numbers drawn in `forward` are others in float64, and so is all that depends on a type. The reference's own error is then no
rounding, and limits made of it would let an output pass that leaves the difference out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, noticed, operation_name
from ridgeline.tools.judge.worker.grading.cases.case import Case, EachErrors, errors_of, exact_of, expected_of
from ridgeline.tools.judge.worker.grading.cases.class_errors import floating_errors, sum_errors
from ridgeline.tools.judge.worker.grading.cases.vector_signs import as_expected, signed_as
from ridgeline.tools.judge.worker.grading.limits.plain_sums import plain_errors
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import NOMINAL_GATE, SUM_ERROR
from ridgeline.tools.records.vocabulary import PrecisionClass

_UNASKED = {torch.float16: NOMINAL_GATE[PrecisionClass.FP16], torch.bfloat16: NOMINAL_GATE[PrecisionClass.BF16]}
_UNASKED_WIDER = NOMINAL_GATE[PrecisionClass.TF32]
"""An own error up to this is taken for rounding: 100 x the nominal gate of fp32, or that of an output's own type."""
_MULTIPLE = 10.0
"""An own error is taken for rounding up to this x what rounding each result on the way to the narrowest type does, or what
sums lose."""


def settle_double(reference: Reference, inputs: Tensors, native: Tensors) -> None:
    """Compare the reference's result `native` with what it gives in float64; let it keep its own type where it looks at bits.

    Raises:
        BadReferenceError: it computes something else in float64.
    """
    parameters = reference.named_tensors()
    with torch.no_grad():
        if not any(n.is_floating_point() for n in native) or reference.in_double(inputs, parameters) is None:
            return
    case = Case("in float64", inputs, parameters, expected_of(reference, inputs, parameters, exact_of(native)))
    native = as_expected(reference, native, case.expected, lambda: reference.run(inputs))
    own = errors_of(native, case.expected)
    if own is None:
        return  # it overflows on the way, which the probes tell
    far = [i for i, errors in enumerate(own) if errors.overall > _UNASKED.get(native[i].dtype, _UNASKED_WIDER)]
    if not far:
        return
    seen = noticed(lambda: reference.run(inputs), _Seen(inputs))
    if seen.has_views_of_bits:
        reference.keeps_own_type = True
        return
    for rounding in _roundings(reference, case, seen.narrowest):
        far = [i for i in far if rounding is None or own[i].overall > _MULTIPLE * rounding[i].overall]
    if far:
        raise BadReferenceError.of_text(_words(max(own[i].overall for i in far), seen.random))


def _words(error: float, random: str) -> str:
    off = f"its result in float64 differs by {100 * error:.2g} %, far more than rounding explains: "
    if random:
        return (
            f"{off}forward() draws random numbers ({random}), which are others in float64; draw them in get_inputs() and "
            "give them to forward()"
        )
    return (
        f"{off}forward() computes something else there (what depends on a tensor's dtype?), so no output can be judged"
    )


def _roundings(reference: Reference, case: Case, narrowest: torch.dtype) -> Iterator[EachErrors | None]:
    """Yield what rounding does to each output, in one way after the other; None where nothing can be told of that way."""
    try:
        with torch.no_grad(), signed_as(reference, case.expected), _Rounded(narrowest):
            outputs = reference.in_double(case.inputs, case.parameters)
    except BadReferenceError:  # rounded numbers fail an assertion
        outputs = None
    yield None if outputs is None else floating_errors(outputs, case)
    yield sum_errors(reference, case, SUM_ERROR[PrecisionClass.FP32])
    yield plain_errors(reference, case)


class _Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes the narrowest type that something is computed in, numbers that are drawn, and views of bits."""

    def __init__(self, inputs: Tensors) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.narrowest = torch.float32
        self.random = ""  # the first operation that draws
        self.has_views_of_bits = False
        if torch.get_float32_matmul_precision() == "medium":
            self._note(torch.bfloat16)
        for tensor in inputs:
            self._note(tensor.dtype)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = operation_name(func)
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.random = self.random or name.rstrip("_")
        self.has_views_of_bits = self.has_views_of_bits or func is torch.ops.aten.view.dtype
        for made in _pytree.tree_leaves(result):
            if isinstance(made, torch.Tensor):
                self._note(made.dtype)
        return result

    def _note(self, dtype: torch.dtype) -> None:
        if dtype.is_floating_point and torch.finfo(dtype).eps > torch.finfo(self.narrowest).eps:
            self.narrowest = dtype


class _Rounded(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Rounds each result in float64 to a type."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self._dtype = dtype

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if any(returned.alias_info is not None for returned in func._schema.returns):
            return result
        return _pytree.tree_map(self._rounded, result)

    def _rounded(self, made: Any) -> Any:
        if not isinstance(made, torch.Tensor) or made.dtype is not torch.float64:
            return made
        rounded = made.to(self._dtype).double()
        return torch.where(torch.isfinite(rounded), rounded, made)
