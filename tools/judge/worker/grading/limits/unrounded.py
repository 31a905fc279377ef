"""Outputs in which a reference rounds nothing: it sorts, gathers, takes the largest, and moves numbers as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import Marked, TorchDispatchMode, run_in
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import NOMINAL
from ridgeline.tools.records.vocabulary import PrecisionClass

_NARROWER = (torch.float32, torch.float16, torch.bfloat16)
"""Types of outputs: float64 shows nothing of what is rounded to it."""


def unrounded_outputs(
    reference: Reference, book: CaseBook, trials: Sequence[str], dtypes: Sequence[torch.dtype]
) -> frozenset[int]:
    """Return the outputs that are what float64 gives in every trial, bit by bit, of numbers none of which is rounded before."""
    own = [book.own_of(name, (PrecisionClass.FP32,))[PrecisionClass.FP32] for name in trials]
    chosen = (i for i, dtype in enumerate(dtypes) if dtype in _NARROWER)
    found = frozenset(i for i in chosen if all(each is not None and each[i].is_none for each in own))
    return found - _rounded(reference, book) if found else found


def _rounded(reference: Reference, book: CaseBook) -> frozenset[int]:
    """Return the outputs made of a result in float64 that is none of float32, or of what shows nothing of rounding."""
    case, seen = book.case(NOMINAL[0]), _Rounding()
    outputs: Tensors | None
    try:
        outputs = run_in(seen, lambda: reference.in_double(case.inputs, case.parameters))
    except BadReferenceError:
        outputs = None  # an operation takes no mode
    if outputs is None:
        return frozenset(range(len(case.expected)))
    return frozenset(i for i, output in enumerate(outputs) if seen.is_of_rounded(output))


class _Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes which results would be rounded in float32, are of less than float64, or are made of such; no index is."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self._rounded = Marked()

    def is_of_rounded(self, tensor: torch.Tensor) -> bool:
        """Return whether any number in a tensor's memory is rounded, or made of one that is."""
        return tensor in self._rounded

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = tensors_in((args, kwargs or {}))
        is_of_rounded = any(t in self._rounded for t in given)
        for made in tensors_in(result):
            is_number = made.is_floating_point() or made.is_complex()
            self._rounded.note(made, given, is_marked=is_number and (is_of_rounded or _is_rounded(made)))
        return result


def _is_rounded(made: torch.Tensor) -> bool:
    return made.dtype is not torch.float64 or not bool(((made.float() == made) | made.isnan()).all())
