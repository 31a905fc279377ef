"""Writes of a reference to places by index: a place that is written twice has no certain value."""

from __future__ import annotations

from typing import Any

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, named_arguments, noticed, operation_name
from ridgeline.tools.judge.worker.reference import Reference

_WRITES = (
    "index_put",
    "_index_put_impl",
    "_unsafe_index_put",
    "index_copy",
    "put",
    "scatter",
    "max_unpool2d",
    "max_unpool3d",
)
"""Operations of torch that write each number to a place of its own, one after the other."""


def writes_to_places(reference: Reference, inputs: Tensors) -> bool:
    """Return whether the reference writes different numbers to places that whole numbers say; True where it fails."""
    try:
        return noticed(lambda: reference.run(inputs), _Writes()).are_met
    except ProblemError:
        return True


class _Writes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes whether anything is written by index. What is added, or one number for all places, is certain."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.are_met = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if operation_name(func).rstrip("_") in _WRITES:
            given = named_arguments(func, args, kwargs)
            self.are_met = self.are_met or _is_uncertain(given)
        return func(*args, **(kwargs or {}))


def _is_uncertain(given: dict[str, Any]) -> bool:
    """Return whether a place that is met twice may hold either number, by the arguments of a call."""
    numbers = given.get("values", given.get("source", given.get("src", given.get("self"))))
    indices = given.get("indices", given.get("index"))
    of_whole = [i for i in (indices if isinstance(indices, list | tuple) else [indices]) if isinstance(i, torch.Tensor)]
    is_by_number = any(not i.is_floating_point() and i.dtype != torch.bool for i in of_whole)
    is_combined = bool(given.get("accumulate")) or "reduce" in given or "value" in given
    return is_by_number and not is_combined and isinstance(numbers, torch.Tensor) and numbers.numel() > 1
