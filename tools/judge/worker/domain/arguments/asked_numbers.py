"""NaN and infinities that a reference asks its inputs for: what it does with them is a part of what it computes then.

`isfinite` and `x != x` come as comparisons, of a tensor with itself and with an infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.dispatch_modes import Marked, TorchDispatchMode, noticed, operation_name
from ridgeline.tools.judge.worker.reference import Reference

_ASKING = frozenset(
    {"isnan", "isinf", "isposinf", "isneginf", "isfinite", "nan_to_num"}
    | {"nansum", "nanmean", "nanmedian", "nanquantile", "fmax", "fmin"}
)
"""Operations that take NaN, or an infinity, for something else than a number."""
_COPIES = frozenset({"_to_copy", "clone"})
_EQUALITY, _ORDER = frozenset({"eq", "ne"}), frozenset({"lt", "le", "gt", "ge"})


def asks_for_not_finite(reference: Reference, inputs: Tensors) -> bool:
    """Return whether a run asks it of an input's own numbers, or of what is made of each of them by itself: scaled ones, say.

    What a reference makes of several on the way and asks for, a softmax of nothing or a ratio of zeros, says nothing of its
    inputs: it comes in usual trials as it is.
    """
    floating = [t for t in inputs if t.is_floating_point()]
    try:
        return noticed(lambda: reference.run(inputs), _Asked(floating)).found
    except ProblemError:  # an operation takes no look
        return False


class _Asked(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes whether an operation asks for NaN or infinities among given tensors' numbers."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self._own = Marked()
        self.found = False
        for tensor in inputs:
            self._own.note(tensor, (), is_marked=True)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [each for each in args if isinstance(each, torch.Tensor)]
        is_own = bool(given) and all(tensor in self._own for tensor in given)
        self.found = self.found or (
            bool(given) and given[0] in self._own and _asks(operation_name(func).rstrip("_"), args)
        )
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            each_by_itself = torch.Tag.pointwise in func.tags or operation_name(func) in _COPIES
            self._own.note(result, given, is_marked=is_own and each_by_itself)
        return result


def _asks(name: str, args: Any) -> bool:
    if not args or not isinstance(args[0], torch.Tensor) or not args[0].is_floating_point():
        return False
    return name in _ASKING or (
        len(args) > 1
        and ((name in _EQUALITY and args[0] is args[1]) or (name in _EQUALITY | _ORDER and _is_infinite(args[1])))
    )


def _is_infinite(value: Any) -> bool:
    """Return whether it is an infinity, as a number or as a tensor of one number."""
    if isinstance(value, torch.Tensor):
        return value.dim() == 0 and bool(value.isinf())
    return isinstance(value, float) and math.isinf(value)
