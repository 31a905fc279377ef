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
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, noticed

BEYOND_ON_THE_WAY = "a result on the way to its output would not be finite"
_MOST_SEEN = 1024
"""Results of a run whose sizes are looked at: where these are finite, none is looked for."""
_MOST_HELD = 64
"""Results that are measured at once."""
_LARGE = 1 << 12
"""Numbers of a result that is measured at once: none of this size is held."""


def leaves_range(run: Callable[[], object]) -> bool:
    """Return whether a result in a run is not finite that is made of finite numbers.

    The sizes of the first `_MOST_SEEN` results tell most runs that stay within range, at a fraction of what a look at each
    operand takes: rates come before the steps that use them.
    """
    return not noticed(run, _Sizes()).are_finite and noticed(run, _Way()).is_left


class _Sizes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes the size of each result, which is not finite where one of its numbers is not."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self._held: list[torch.Tensor] = []
        self._sizes: list[torch.Tensor] = []  # read at the end alone
        self._n_seen = 0
        self._forms: dict[Any, tuple[bool, bool]] = {}  # whether an operation makes numbers, and whether it writes

    @property
    def are_finite(self) -> bool:
        """Return whether every size is finite."""
        self._measure()
        return not self._sizes or bool(torch.isfinite(torch.stack([each.cpu().double() for each in self._sizes])).all())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._n_seen >= _MOST_SEEN:
            return func(*args, **(kwargs or {}))
        form = self._forms.get(func)
        if form is None:
            makes = not func.is_view and "empty" not in func._schema.name
            form = self._forms[func] = makes, func._schema.is_mutable
        makes, writes = form
        if writes:
            self._measure()  # what is held may be written
        result = func(*args, **(kwargs or {}))
        if makes:
            made = [result] if isinstance(result, torch.Tensor) else tensors_in(result)
            self._n_seen += 1
            self._held += [t for t in made if t.is_floating_point() or t.is_complex()]
            if len(self._held) >= _MOST_HELD or any(t.numel() > _LARGE for t in made):
                self._measure()
        return result

    def _measure(self) -> None:
        if self._held:
            self._sizes += torch._foreach_norm(self._held, 1)
            self._held = []


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
