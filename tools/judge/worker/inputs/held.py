"""The numbers that inputs may hold in the trials of HELD: the reference's own, and those of their draws."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Scalar, Tensors
from ridgeline.tools.judge.worker.inputs.written_numbers import WrittenNumbers
from ridgeline.tools.records.trial_names import EARLY

Held = Callable[[torch.Tensor], float]
"""Returns the number that an input holds."""
_USUAL = (1.0, -1.0, 0.5, -0.5)
_QUANTILES = (1 / 2, 1 / 4, 3 / 4, 1 / 16, 15 / 16)
_MOST_OWN = 6
"""Numbers of the reference's own that are tried, of them those first that are written with a point."""
_LARGEST = 100
"""Larger numbers are counts and sizes."""
_NEXT = 1 / 16
"""Part of a range by which a number may be beyond it."""
_LOOKED_AT = 1 << 16
"""Numbers of an input whose quantile or mean is taken."""


def zero(_tensor: torch.Tensor) -> float:
    """Return the number of inputs that are silent."""
    return 0.0


def numbers_to_hold(source: str, scalars: Sequence[Scalar]) -> tuple[Held, ...]:
    """Return rules for the number that every input holds, none of which is 0 for all: the reference's own numbers first."""
    fixed = dict.fromkeys((*_own_numbers(source, scalars)[:_MOST_OWN], *_USUAL))
    of_draws = (functools.partial(_quantile, share=share) for share in _QUANTILES)
    return (*(functools.partial(_fixed, number=number) for number in fixed), _mean, *of_draws)


def with_held_of(inputs: Tensors, others: Tensors, trial: str) -> Tensors:
    """Return other inputs that hold the numbers which these hold in a trial of HELD: they are at its silent end."""
    end = 0 if trial in EARLY else -1
    pairs = zip(inputs, others, strict=True)
    return tuple(torch.where(t == t.flatten()[end], t, other) if t.numel() else other for t, other in pairs)


def _own_numbers(source: str, scalars: Sequence[Scalar]) -> list[float]:
    """Return scalars, and numbers that are written in the reference, but 0 and large ones; each once."""
    found = [*(value for value in scalars if isinstance(value, float)), *WrittenNumbers(source).numbers()]
    ordered = sorted(found, key=lambda value: isinstance(value, int))
    return list(dict.fromkeys(float(value) for value in ordered if 0 < abs(value) <= _LARGEST))


def may_hold(tensor: torch.Tensor, number: float) -> bool:
    """Return whether a number is within a tensor's range, or next to it."""
    low, high = map(float, torch.aminmax(_some_of(tensor)))
    return low - (high - low) * _NEXT <= number <= high + (high - low) * _NEXT


def _fixed(tensor: torch.Tensor, *, number: float) -> float:
    """Return the number, or the mean of an input that has no such number in its range."""
    return number if may_hold(tensor, number) else _mean(tensor)


def _mean(tensor: torch.Tensor) -> float:
    return _of_few_bits(_some_of(tensor).mean())


def _quantile(tensor: torch.Tensor, *, share: float) -> float:
    return _of_few_bits(torch.quantile(_some_of(tensor), share))


def _some_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return some of a tensor's finite numbers, at places evenly apart; 0 where it has none."""
    flat = tensor.detach().flatten()
    some = flat[:: max(1, flat.numel() // _LOOKED_AT)].double()
    some = some[torch.isfinite(some)]
    return some if some.numel() else some.new_zeros(1)


def _of_few_bits(number: torch.Tensor) -> float:
    """Return a number near this one that every type holds: what rounds operands leaves it alone."""
    return float(number.bfloat16())
