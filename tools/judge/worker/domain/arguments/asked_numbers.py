"""NaN and infinities that a reference asks its inputs for: what it does with them is a part of what it computes then.

`isfinite` and `x != x` come as comparisons, of a tensor with itself and with an infinity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, memory_of, noticed, operation_name
from ridgeline.tools.judge.worker.reference import Reference

_ASKING = frozenset(
    {"isnan", "isinf", "isposinf", "isneginf", "isfinite", "nan_to_num"}
    | {"nansum", "nanmean", "nanmedian", "nanquantile", "fmax", "fmin"}
)
"""Operations that take NaN, or an infinity, for something else than a number."""
_EQUALITY, _ORDER = frozenset({"eq", "ne"}), frozenset({"lt", "le", "gt", "ge"})
_AT_ITS_PLACE = frozenset({"_to_copy", "clone", "fill", "zero", "masked_fill", "index_fill", "fill_diagonal"})
"""Operations that make each number at its own place, beside those that torch says so of."""
_MOVING = frozenset(
    {"cat", "stack", "copy", "slice_scatter", "repeat", "flip", "roll", "rot90", "tril", "triu", "diag_embed"}
    | {"index", "index_select", "gather", "take", "masked_select", "embedding", "sort", "topk", "im2col"}
    | {"index_put", "index_copy", "scatter", "masked_scatter"}
    | {"constant_pad_nd", *(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3))}
    | {"pixel_shuffle", "pixel_unshuffle", "channel_shuffle"}
)
"""Those that give numbers as they are at other places: of several results, the first."""

_SEVERAL = object()
"""The origin of what is made of several numbers, and of inputs that are none: masks, labels and indices."""


def asks_for_not_finite(reference: Reference, inputs: Tensors) -> bool:
    """Return whether a run asks it of inputs' own numbers, or of what is made of each of them by itself: scaled ones, say.

    Own numbers that are moved, or put beside others, are such. What a reference makes of several on the way and asks for, a
    softmax of nothing or a ratio of zeros, says nothing of its inputs: it comes in usual trials as it is.
    """
    try:
        return noticed(lambda: reference.run(inputs), _Asked(inputs)).found
    except ProblemError:  # an operation takes no look
        return False


class _Asked(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes whether an operation asks for NaN or infinities among given tensors' numbers.

    What is made of each number of one input, at its place, has that input's origin; moved numbers have a new one, as two of
    them at one place are several. A constant, which is made of no input, has none.
    """

    def __init__(self, inputs: Tensors) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self._origins = {memory_of(t): object() if t.is_floating_point() else _SEVERAL for t in inputs}
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = operation_name(func).rstrip("_"), tensors_in((args, kwargs or {}))
        self.found = self.found or (bool(self._of(given) - {_SEVERAL}) and _asks(name, args))
        origin, memory = self._made_by(func, name, given), set(map(memory_of, given))
        result = func(*args, **(kwargs or {}))
        is_written = func._schema.is_mutable and torch.Tag.inplace_view not in func.tags
        for place, made in enumerate(tensors_in(result)):
            if is_written or memory_of(made) not in memory or _is_fresh(name):  # else it is a view
                self._note(made, _SEVERAL if place and name in _MOVING else origin)
        return result

    def _of(self, given: Iterable[torch.Tensor]) -> set[object]:
        return {self._origins[memory] for memory in map(memory_of, given) if memory in self._origins}

    def _note(self, made: torch.Tensor, origin: object | None) -> None:
        if origin is None:
            self._origins.pop(memory_of(made), None)
        else:
            self._origins[memory_of(made)] = origin

    def _made_by(self, func: Any, name: str, given: list[torch.Tensor]) -> object | None:
        """Return the origin of what an operation makes of given tensors, None of a constant."""
        origins = self._of(given)
        if not origins or _is_fresh(name):
            return None
        if name in _MOVING:
            moved = self._of(t for t in given if t.is_floating_point() or t.dtype == torch.bool)  # not of indices
            return object() if moved and _SEVERAL not in moved else _SEVERAL
        own = [t for t in given if memory_of(t) in self._origins]
        own = [t for t in own if t.numel() > 1] or own  # an input of one number scales others as a constant does
        is_each = torch.Tag.pointwise in func.tags or name in _AT_ITS_PLACE
        is_of_one = _SEVERAL not in origins and len(self._of(own)) == 1 and _are_at_one_place(own)
        return self._of(own).pop() if is_each and is_of_one else _SEVERAL


def _is_fresh(name: str) -> bool:
    """Return whether an operation makes what no number of a tensor is in."""
    return name == "lift_fresh" or name.startswith("new_") or name.endswith("_like")


def _are_at_one_place(tensors: list[torch.Tensor]) -> bool:
    """Return whether numbers of one origin that meet are each other: of one shape, and the same part of one memory."""
    first = tensors[0]
    return all(
        t.shape == first.shape
        and (memory_of(t) != memory_of(first) or (t.data_ptr(), t.stride()) == (first.data_ptr(), first.stride()))
        for t in tensors
    )


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
