"""Whole numbers that an operation takes for something else: below 0 an index counts from the end, a blank is no label.

The reference refuses none of them, so they pass for other values of an input that `get_inputs` never gives them. A kernel
that reads before its array, or that has no blank among its labels, is right for all that it is asked for.
"""

from __future__ import annotations

from typing import Any

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, named_arguments, noticed, operation_name
from ridgeline.tools.judge.worker.reference import Reference

_WRAPPING = frozenset({"index", "_unsafe_index", "index_put", "_index_put_impl", "_unsafe_index_put", "take", "put"})
"""Operations that count an index below 0 from the end; the others refuse it."""
_SPECIAL = {"blank": "targets", "ignore_index": "target"}
"""Arguments of operations that name such a number, and those in which it stands for something else."""


def gain_meaning(reference: Reference, given: Tensors, changed: Tensors) -> bool:
    """Return whether an operation takes numbers of the changed inputs for something else, and none of the given ones."""
    return not _found(reference, changed) <= _found(reference, given)


def _found(reference: Reference, inputs: Tensors) -> frozenset[str]:
    try:
        return frozenset(noticed(lambda: reference.run(inputs), _Special()).found)
    except ProblemError:  # it refuses them, or an operation takes no look
        return frozenset()


class _Special(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes the operations that take a whole number for something else."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.found: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = operation_name(func), named_arguments(func, args, kwargs)
        indices = _whole(given.get("indices", given.get("index"))) if name.rstrip("_") in _WRAPPING else []
        if any(bool((each < 0).any()) for each in indices):
            self.found.add(f"{name}, below 0")
        for argument in func._schema.arguments:
            if argument.name in _SPECIAL:
                number = given.get(argument.name, argument.default_value)
                if any(bool((each == number).any()) for each in _whole(given.get(_SPECIAL[argument.name]))):
                    self.found.add(f"{name}, {argument.name}")
        return func(*args, **(kwargs or {}))


def _whole(values: Any) -> list[torch.Tensor]:
    """Return the tensors of whole numbers among values."""
    return [t for t in tensors_in(values) if not (t.is_floating_point() or t.is_complex() or t.dtype == torch.bool)]
