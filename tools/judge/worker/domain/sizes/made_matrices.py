"""Symmetric matrices that a reference makes of others: products of points with themselves, means with the transpose, sums.

How many steps a solver of theirs needs is set by what they are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, noticed
from ridgeline.tools.judge.worker.domain.sizes.jumps import jumps
from ridgeline.tools.judge.worker.inputs.values.structure import mirrored
from ridgeline.tools.judge.worker.inputs.values.symmetry import may_be_singular

_MOST_SEEN = 64
"""Square results of a run that are looked at."""
_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_ROUNDING = 2.0**-16
"""Part of its largest number by which a product's two halves may differ."""


def makes_symmetric(run: Callable[[], object]) -> bool:
    """Return whether any result in a run is a symmetric matrix that may be definite."""
    return noticed(run, _Made()).is_any


def makes_and_jumps(run: Callable[[], object]) -> tuple[bool, bool]:
    """Return of one run whether it makes such a matrix, and whether anything jumps: that look runs nothing of its own."""
    jumping: list[bool] = []
    is_made = makes_symmetric(lambda: jumping.append(jumps(run)))
    return is_made, jumping[0]


class _Made(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes whether a result is such a matrix; of several in one tensor the first is looked at."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.is_any = False
        self._n_seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_of_numbers = any(t.is_floating_point() for t in tensors_in((args, kwargs)))  # a mask of ones is none
        if is_of_numbers and not func.is_view and "empty" not in func._schema.name:
            for made in tensors_in(result):
                self.is_any = self.is_any or self._is_symmetric(made)
        return result

    def _is_symmetric(self, made: torch.Tensor) -> bool:
        is_plain = made.layout is torch.strided and made.dtype in _TYPES
        is_square = is_plain and made.dim() > 1 and made.shape[-1] == made.shape[-2] and made.numel() > 0
        if not is_square or self._n_seen >= _MOST_SEEN:
            return False
        self._n_seen += 1
        one = made.reshape(-1, *made.shape[-2:])[0]
        if not bool((one - one.mT).abs().max() <= _ROUNDING * one.abs().max()):
            return False
        return may_be_singular(mirrored(one))
