"""The finite ways of a reference: whether any result on the way to its output is beyond its type's range.

A rate of infinity is a decay of zero, which the output does not show. An honest kernel that sums up the rates of a chunk and
takes their differences has no number there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode

BEYOND_ON_THE_WAY = "a result on the way to its output would not be finite"


def leaves_range(run: Callable[[], object]) -> bool:
    """Return whether a result in a run is not finite that is made of finite numbers."""
    seen = _Way()
    with torch.no_grad(), seen:
        run()
    return seen.is_left


class _Way(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes whether any result that is made of finite numbers is not finite itself."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self._lost: list[torch.Tensor] = []  # read at the end alone: a GPU is not waited for at each operation

    @property
    def is_left(self) -> bool:
        """Return whether a result was not finite."""
        return bool(self._lost) and bool(torch.stack([lost.cpu() for lost in self._lost]).any())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        operands = [*map(_are_finite, _numbers(args)), *map(_are_finite, _numbers(kwargs))]
        result = func(*args, **(kwargs or {}))
        scalars = [a for a in (*args, *(kwargs or {}).values()) if isinstance(a, float)]
        if not operands or func.is_view or "empty" in func._schema.name or not all(map(math.isfinite, scalars)):
            return result
        was_finite = torch.stack(operands).all()
        self._lost += [was_finite & ~_are_finite(made) for made in _numbers(result)]
        return result


def _numbers(value: Any) -> list[torch.Tensor]:
    return [t for t in tensors_in(value) if (t.is_floating_point() or t.is_complex()) and t.numel()]


def _are_finite(numbers: torch.Tensor) -> torch.Tensor:
    return torch.isfinite(numbers).all()
