"""Outputs in which a reference rounds nothing: it sorts, gathers, takes the largest, and moves numbers as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode
from ridgeline.tools.judge.worker.grading.cases import CaseBook
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import NOMINAL
from ridgeline.tools.records.vocabulary import PrecisionClass

_NARROWER = (torch.float32, torch.float16, torch.bfloat16)
"""Types of outputs: float64 shows nothing of what is rounded to it."""


def unrounded_outputs(
    reference: Reference, book: CaseBook, trials: Sequence[str], dtypes: Sequence[torch.dtype]
) -> frozenset[int]:
    """Return the outputs that are what float64 gives, bit by bit and in every trial, where nothing on the way is rounded."""
    own = [book.own_of(name, (PrecisionClass.FP32,))[PrecisionClass.FP32] for name in trials]
    chosen = (i for i, dtype in enumerate(dtypes) if dtype in _NARROWER)
    found = frozenset(i for i in chosen if all(each is not None and each[i].is_none for each in own))
    return found if found and not _rounds(reference, book) else frozenset()


def _rounds(reference: Reference, book: CaseBook) -> bool:
    """Return whether a result in float64 is none of float32, or nothing can be told: it computes in less on the way."""
    case, seen = book.case(NOMINAL[0]), _Rounding()
    try:
        with torch.no_grad(), seen:
            outputs = reference.in_double(case.inputs, case.parameters)
    except BadReferenceError:
        return True  # an operation takes no mode
    return outputs is None or seen.is_found


class _Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes whether any result would be rounded in float32, or is of less than float64."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.is_found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.is_found = self.is_found or any(map(_is_rounded, tensors_in(result)))
        return result


def _is_rounded(made: torch.Tensor) -> bool:
    if not made.is_floating_point():
        return made.is_complex()
    return made.dtype is not torch.float64 or not bool(((made.float() == made) | made.isnan()).all())
