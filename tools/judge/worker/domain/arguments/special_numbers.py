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
_SPECIAL = ("blank", "ignore_index")
"""Arguments of operations that name such a number."""


class SpecialNumbers:
    """The numbers of inputs that a reference takes for something else, beside those of inputs as they are given."""

    def __init__(self, reference: Reference, given: Tensors) -> None:
        """Look at nothing yet; `given` are inputs as `get_inputs` draws them."""
        self._reference = reference
        self._given = given
        self._usual: frozenset[str] | None = None

    def are_new(self, inputs: Tensors) -> bool:
        """Return whether anything is taken for something else of these inputs of which nothing is as they are given."""
        if all(each.is_floating_point() or each.is_complex() or each.dtype == torch.bool for each in inputs):
            return False
        if self._usual is None:
            self._usual = self._found(self._given)
        return not self._found(inputs) <= self._usual

    def _found(self, inputs: Tensors) -> frozenset[str]:
        try:
            return frozenset(noticed(lambda: self._reference.run(inputs), _Special()).found)
        except ProblemError:  # it refuses them, or an operation takes no look
            return frozenset()


class _Special(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes the operations that take a whole number for something else."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.found: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = operation_name(func), named_arguments(func, args, kwargs)
        if name.rstrip("_") in _WRAPPING and any(
            bool((i < 0).any()) for i in _whole(given.get("indices", given.get("index")))
        ):
            self.found.add(f"{name}, below 0")
        for argument in func._schema.arguments:
            if argument.name in _SPECIAL:
                number = given.get(argument.name, argument.default_value)
                if any(bool((each == number).any()) for each in _whole(given)):
                    self.found.add(f"{name}, {argument.name}")
        return func(*args, **(kwargs or {}))


def _whole(values: Any) -> list[torch.Tensor]:
    """Return the tensors of whole numbers among values."""
    found = tensors_in(values)
    return [t for t in found if not t.is_floating_point() and not t.is_complex() and t.dtype != torch.bool]
