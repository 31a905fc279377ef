"""The rows of an input that a reference brings together: what it makes of some depends on what the others are.

Only there does it show whether one row is a moved copy of another. Nothing else is asked of the reference: of pairs that are
compared, of sorted columns and of a batch's statistics rows meet, not of what is made of each row, or of their sum.
"""

from __future__ import annotations

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference

_ROUNDING = 16
"""Spacings of numbers at the largest of an output: by more than rounding moves a sum of four runs."""
_LABEL = "rows"


def do_rows_meet(index: int, source: SecretSource, book: CaseBook, reference: Reference) -> bool:
    """Return whether any number of the output depends on two secret halves of an input's rows at once.

    Each half is that of one of two draws, in all four ways. What is a sum over halves adds up: both of the other draw, and
    neither, are as much as one and one. A reference that refuses a mixture of draws tells nothing.
    """
    inputs, other = source.nominal(f"{_LABEL} 0"), source.nominal(f"{_LABEL} 1")[index]
    is_first = torch.zeros(len(other), dtype=torch.bool, device=other.device)
    is_first[source.rng(_LABEL).sample(range(len(other)), len(other) // 2)] = True
    neither = torch.zeros_like(is_first)
    sums: list[_Sum] = []
    with book.usual_parameters():
        for sign, rows in ((1, neither), (1, ~neither), (-1, is_first), (-1, ~is_first)):
            try:
                outputs = reference.run(_with_rows_of(inputs, index, other, rows))
            except ProblemError:
                return False
            sums = sums or [_Sum(output) for output in outputs]
            if not all(each.adds(sign, output) for each, output in zip(sums, outputs, strict=True)):
                return False
    return any(each.is_beyond_rounding for each in sums)


def _with_rows_of(inputs: Tensors, index: int, other: torch.Tensor, rows: torch.Tensor) -> Tensors:
    changed = [tensor.clone() for tensor in inputs]
    changed[index][rows] = other[rows]
    return tuple(changed)


class _Sum:
    """An output's sum over runs, of either sign."""

    def __init__(self, like: torch.Tensor) -> None:
        self._is_whole = not like.is_floating_point()
        self._spacing = 0.0 if self._is_whole else torch.finfo(like.dtype).eps
        wide = torch.float64 if self._is_whole or like.dtype == torch.float64 else torch.float32
        self._total = torch.zeros(like.shape, dtype=wide, device=like.device)
        self._largest = 0.0

    def adds(self, sign: int, output: torch.Tensor) -> bool:
        """Add a run's output; return whether it is of the others' shape."""
        if output.shape != self._total.shape:
            return False
        term = output.to(self._total.dtype)
        self._total += sign * term
        finite = term[term.isfinite()]
        self._largest = max(self._largest, float(finite.abs().amax()) if finite.numel() else 0.0)
        return True

    @property
    def is_beyond_rounding(self) -> bool:
        """Return whether the sum is another than 0, by more than rounding where it has any; infinities tell nothing."""
        return bool(
            (self._total.abs() > _ROUNDING * self._spacing * self._largest).logical_and(self._total.isfinite()).any()
        )
