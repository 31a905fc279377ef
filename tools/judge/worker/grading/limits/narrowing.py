"""References whose outputs are in float64, and whether they compute in it: who casts on the way asks for no more digits."""

from __future__ import annotations

from typing import Any

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, noticed
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import NOMINAL

_STEPS = 1024
"""Constants that are multiples of 1 / this are exact: ones, zeros, whole numbers, halves."""


def computed_dtypes(reference: Reference, book: CaseBook, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the outputs' types, with float32 in place of float64 where the reference computes in less on the way."""
    if "float64" not in dtypes or not _narrows(reference, book.case(NOMINAL[0]).inputs):
        return dtypes
    return tuple("float32" if dtype == "float64" else dtype for dtype in dtypes)


def _narrows(reference: Reference, inputs: Tensors) -> bool:
    """Return whether the reference makes numbers in float64 of numbers that it computed in less."""
    try:
        return noticed(lambda: reference.run(inputs), _Narrowing()).is_found
    except BadReferenceError:
        return True  # nothing can be told of an operation that takes no mode


class _Narrowing(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes which tensors were computed in less than float64, and whether one in float64 was made of them.

    What a view shows of an input is as it was given, a mask as numbers is exact, and so is a constant by itself, and what is
    made of such constants alone, while its values are multiples of a power of two: float64 has the same ones.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.is_found = False
        self._narrow: dict[int, torch.Tensor] = {}  # by id; held, so that no other tensor gets it
        self._exact: dict[int, torch.Tensor] = {}  # constants, by id

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        given, made = tensors_in((args, kwargs)), [t for t in tensors_in(result) if t.is_floating_point()]
        is_of_narrow = any(id(t) in self._narrow for t in given)
        for each in made:
            if each.dtype is torch.float64:
                self.is_found = self.is_found or is_of_narrow
            elif self._is_exact(given, each):
                self._exact[id(each)] = each
            elif is_of_narrow or _computes(func, given, each):
                self._narrow[id(each)] = each
        return result

    def _is_exact(self, given: list[torch.Tensor], made: torch.Tensor) -> bool:
        """Return whether a tensor is made of constants alone, and has the values that float64 would have."""
        are_constants = all(id(t) in self._exact for t in given if t.is_floating_point())
        return are_constants and bool((made * _STEPS == (made * _STEPS).round()).all())


def _computes(func: Any, given: list[torch.Tensor], made: torch.Tensor) -> bool:
    """Return whether an operation rounds what it makes of tensors none of which was rounded before."""
    if any(returned.alias_info is not None for returned in func._schema.returns):
        return False
    if any(t.dtype is torch.float64 for t in given):
        return True
    is_of_whole = bool(given) and not any(t.is_floating_point() for t in given)
    return made.numel() > 1 and not is_of_whole
