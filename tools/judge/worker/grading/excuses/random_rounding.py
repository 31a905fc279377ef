"""Results in float64 rounded at random to ones that float32 holds: a run of the reference with other last bits.

The mean of numbers that are all alike may be off by last bits too: a kernel multiplies their sum by a rounded 1/n, and what is
left of the numbers less that mean, over a deviation of nothing, is anything.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree

from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, operation_name
from ridgeline.tools.judge.worker.grading.limits.plain_sums import PRODUCTS
from ridgeline.tools.records.precision import LAST_BITS, SUM_ERROR
from ridgeline.tools.records.vocabulary import PrecisionClass

_FEWEST_ALIKE = 3
_JUMPS = frozenset(
    {"round", "floor", "ceil", "trunc", "frac", "sign", "sgn", "floor_divide", "remainder", "fmod", "heaviside"}
)
"""Operations of floating numbers that jump; those whose results are of another type are told by that."""

_SUMS = frozenset({*PRODUCTS, "convolution", "sum", "mean"})
"""Operations that add in float32 and round the sum, where their numbers are of 16 bits: last bits of it decide.

Only linear ones: of the sizes of numbers they give the size of all terms. PlainSums has a way of its own for norms and other
functions of sums, which are not, and none for a convolution.
"""


def shares_of(values: torch.Tensor, rng_seed: int, count: int) -> torch.Tensor:
    """Return a random number from 0 to 1 for each number in float64, the same one for equal numbers."""
    factor = random.Random(rng_seed << 32 | count).getrandbits(63) | 1
    return (values.contiguous().view(torch.int64) * factor).double().mul_(2.0**-64).add_(0.5)  # products wrap


class LastBits(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Rounds each result in float64 that float32 does not hold to one that it does, nearer to zero by up to `LAST_BITS`.

    Where it `is_up`, further from zero, but past no whole number: a probability is 1 at most. Of a reference that refuses
    float64 it moves the results in float32 that are no whole numbers. A result in float64 may be rounded to a `narrow` type
    instead, all of it, where that holds it.
    """

    def __init__(
        self,
        rng_seed: int,
        dtype: torch.dtype = torch.float64,
        *,
        is_up: bool = False,
        narrow: torch.dtype | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.is_jump_found = False  # an operation on the way that jumps where last bits decide
        self.has_rounded = dtype is torch.float32  # or met a result of its own type
        self._rng_seed, self._dtype, self._is_up = rng_seed, dtype, is_up
        self._narrow = narrow if dtype is torch.float64 else None
        self._count = 0
        self._sums: list[tuple[torch.Tensor, torch.Tensor]] = []  # of numbers that are alike, and where

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_rounded = (kwargs or {}).get("rounding_mode") is not None
        self.is_jump_found = self.is_jump_found or is_rounded or may_jump(func, (args, kwargs), result)
        if any(returned.alias_info is not None for returned in func._schema.returns):
            return result
        self._count += 1
        if (sums := self._other_sums(func, (args, kwargs or {}), result)) is not None:
            return sums
        rounded = _pytree.tree_map(self._rounded, result)
        return self._with_means(func, args, rounded) if isinstance(rounded, torch.Tensor) else rounded

    def _other_sums(self, func: Any, given: Any, result: Any) -> torch.Tensor | None:
        """Return what sums of numbers of 16 bits are with other last bits, before they are rounded to these; None of others."""
        if operation_name(func) not in _SUMS or not _is_narrow(result):
            return None
        if not all(_is_narrow(t) for t in tensors_in(given) if t.is_floating_point()):
            return None
        (args, kwargs), (sizes, others) = (
            _pytree.tree_map_only(torch.Tensor, as_, given) for as_ in (_wide, _sizes_of)
        )
        exact, terms = func(*args, **kwargs), func(*sizes, **others)
        if exact.dtype is not torch.float64:
            return None
        reach = torch.maximum(LAST_BITS * exact.abs(), 2 * SUM_ERROR[PrecisionClass.FP32] * terms.abs())
        shares = shares_of(exact, self._rng_seed, self._count).mul_(2).sub_(1)
        moved_sums = torch.where(exact.float().double() == exact, exact, exact + reach * shares)
        return moved_sums.to(result.dtype)

    def _with_means(self, func: Any, args: Sequence[Any], result: torch.Tensor) -> torch.Tensor:
        """Return a result, moved by last bits wherever it is the mean of numbers that are all alike."""
        name = operation_name(func)
        if result.dtype is not self._dtype or not args or not isinstance(args[0], torch.Tensor):
            return result
        if name in {"mean", "sum"}:
            alike = _are_alike(args[0], args[1] if len(args) > 1 else None, is_kept=result.dim() == args[0].dim())
            if alike.shape != result.shape:
                return result
            if name == "mean":
                return self._moved_where(alike, result)
            self._sums.append((result, alike))
        elif name == "div":
            for total, alike in self._sums:
                if args[0] is total and alike.shape == result.shape:
                    return self._moved_where(alike, result)
        return result

    def _moved_where(self, alike: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        chosen = alike & (result != 0)
        if not bool(chosen.any()):
            return result
        self.is_jump_found = True
        self._count += 1
        places = torch.arange(result.numel(), dtype=torch.float64, device=result.device).reshape(result.shape)
        shares = shares_of(places, self._rng_seed, self._count)
        return torch.where(chosen, shares.mul_(-LAST_BITS).add_(1).mul_(result), result).to(result.dtype)

    def _rounded(self, made: Any) -> Any:
        if not isinstance(made, torch.Tensor) or made.dtype is not self._dtype:
            return made
        self.has_rounded = True
        values = made.double()
        held = made.float().double() if self._dtype is torch.float64 else values.round()
        if torch.equal(held, values):
            return made
        if self._narrow is not None and random.Random(self._rng_seed << 32 | self._count).getrandbits(1):
            narrowed = values.to(self._narrow).double()
            return torch.where(torch.isfinite(narrowed), narrowed, values)
        shares = shares_of(values, self._rng_seed, self._count).mul_(LAST_BITS if self._is_up else -LAST_BITS)
        changed = shares.add_(1).mul_(values)
        if self._is_up:
            changed = torch.copysign(torch.minimum(changed.abs(), values.abs().ceil()), values)
        rounded = changed.float().double()
        is_number = torch.isfinite(rounded) & (rounded != 0)  # float64 goes further at both ends
        return torch.where(held == values, values, torch.where(is_number, rounded, changed)).to(made.dtype)


def _is_narrow(made: Any) -> bool:
    return isinstance(made, torch.Tensor) and made.dtype in (torch.bfloat16, torch.float16)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _sizes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float().abs_() if tensor.is_floating_point() else tensor


def _are_alike(operand: torch.Tensor, dims: Sequence[int] | None, *, is_kept: bool) -> torch.Tensor:
    """Return where all numbers of a sum are one, of which there are as many as make 1/n no number of few bits."""
    if not operand.dim():
        return torch.zeros_like(operand, dtype=torch.bool)
    chosen = list(dims) if dims else list(range(operand.dim()))
    count = math.prod(operand.shape[d] for d in chosen)
    if count < _FEWEST_ALIKE or count & (count - 1) == 0:
        return torch.zeros_like(operand.sum(chosen, keepdim=is_kept), dtype=torch.bool)
    return operand.amax(chosen, keepdim=is_kept) == operand.amin(chosen, keepdim=is_kept)


def may_jump(func: Any, given: Any, result: Any) -> bool:
    """Return whether an operation rounds, or makes integers, bools or numbers of fewer bits of floating ones."""
    if operation_name(func).rstrip("_") in _JUMPS:
        return True
    floating = [t for t in tensors_in(given) if t.is_floating_point()]
    widest = max((t.element_size() for t in floating), default=0)
    return any(
        not made.is_complex() and (not made.is_floating_point() or made.element_size() < widest)
        for made in tensors_in(result)
        if floating
    )
