"""Constants that a reference makes for itself with other last bits: frequencies, windows and slopes are no operands.

A kernel rounds `1 / 10000 ** (arange(n) / n)` otherwise than PyTorch does, by a unit in each of its steps, and whole positions
multiply that by thousands. PyTorch's own run has one set of roundings alone, and no operand moves it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import Marked, TorchDispatchMode, operation_name, run_in
from ridgeline.tools.judge.worker.grading.excuses.random_rounding import may_jump, shares_of
from ridgeline.tools.judge.worker.reference import Reference

_OF_FORM_ALONE = frozenset(
    f"{made}{of}" for made in ("empty", "zeros", "ones", "full") for of in ("_like", "", "_strided", "_permuted")
) | {"new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided", "lift_fresh", "lift_fresh_copy"}
"""Operations that make constants, of whatever tensor they take the form."""


def with_other_constants(
    reference: Reference, inputs: Tensors, parameters: dict[str, torch.Tensor], rng_seed: int
) -> Tensors | None:
    """Return the outputs in the reference's own type with its constants moved; None where it has none that may move.

    What jumps where last bits decide would tell of another boundary, not of what is lost: behind constants none may.
    """
    moving = _MovedConstants(rng_seed)
    try:
        outputs = run_in(moving, lambda: reference.in_own_type(inputs, parameters))
    except BadReferenceError:
        return None  # an operation takes no mode
    return outputs if moving.has_moved and not moving.is_jump_found else None


class _MovedConstants(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Moves each result in float32 that is made of constants alone, and rounded, by a unit in its last place, or not at all.

    Equal numbers stay equal. Whole numbers stay whole, as does what float32 holds.
    """

    def __init__(self, rng_seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.has_moved = False
        self.is_jump_found = False  # an operation on what is made of such a result jumps where last bits decide
        self._rng_seed = rng_seed
        self._count = 0
        self._constants = Marked()
        self._moved = Marked()  # what is made of a result that was moved, among others

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = tensors_in((args, kwargs))
        is_of_moved = any(t in self._moved for t in given)
        is_constant = self._is_constant(func, given)
        exact = _in_double(func, args, kwargs) if is_constant else None
        result = func(*args, **kwargs)
        self.is_jump_found = self.is_jump_found or (is_of_moved and may_jump(func, (args, kwargs), result))
        if exact is not None:
            result, is_moved = self._with_other_bits(func, result, exact)
            is_of_moved = is_of_moved or is_moved
        for made in tensors_in(result):
            self._constants.note(made, (), is_marked=is_constant)  # also what is written into a constant may be none
            self._moved.note(made, given, is_marked=is_of_moved)
        return result

    def _is_constant(self, func: Any, given: list[torch.Tensor]) -> bool:
        if operation_name(func) in _OF_FORM_ALONE:
            return True
        return torch.Tag.nondeterministic_seeded not in func.tags and all(t in self._constants for t in given)

    def _with_other_bits(self, func: Any, result: Any, exact: Any) -> tuple[Any, bool]:
        """Return a result with other last bits wherever it was rounded, and whether there are any; in place where it is so."""
        was = self._count
        pairs = zip(_pytree.tree_leaves(result), _pytree.tree_leaves(exact), strict=True)
        parts = [self._moved_from(own, double) for own, double in pairs]
        if self._count == was:
            return result, False
        self.has_moved = True
        if any(returned.alias_info is not None for returned in func._schema.returns):
            for own, part in zip(_pytree.tree_leaves(result), parts, strict=True):
                if isinstance(own, torch.Tensor):
                    own.copy_(part)
            return result, True
        return _pytree.tree_unflatten(parts, _pytree.tree_structure(result)), True

    def _moved_from(self, own: Any, double: Any) -> Any:
        if not isinstance(own, torch.Tensor) or own.dtype is not torch.float32 or own.shape != double.shape:
            return own
        values = own.double()
        rounded = (values != double) & (own != own.round()) & torch.isfinite(own)
        if not bool(rounded.any()):
            return own
        self._count += 1
        steps = (shares_of(values, self._rng_seed, self._count) * 3).int() - 1
        other = (own.contiguous().view(torch.int32) + steps).view(torch.float32).reshape(own.shape)
        return torch.where(rounded & (own.abs() >= torch.finfo(torch.float32).tiny * 2), other, own)


def _in_double(func: Any, args: Any, kwargs: Any) -> Any:
    """Return what an operation gives of the same numbers in float64; None where it has no such result, or none of interest."""
    if operation_name(func).startswith(("empty", "new_empty")) or "out" in kwargs:
        return None
    try:
        given, named = _pytree.tree_map(_doubled, (args, kwargs))
        if not tensors_in((args, kwargs)) and named.get("dtype") is None:
            named = named | {"dtype": torch.float64}
        return func(*given, **named)
    except (RuntimeError, TypeError, NotImplementedError):
        return None


def _doubled(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        # a copy in any case: an operation may write where it reads
        return value.double() if value.dtype is torch.float32 else value.clone()
    return torch.float64 if value is torch.float32 else value
