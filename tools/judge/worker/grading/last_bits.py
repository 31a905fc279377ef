"""Boundaries at which last bits decide: a number beside that of a rounding, a comparison or a maximum may fall to either side.

The reference runs in float64 with each result that float32 does not hold rounded at random, a few last bits nearer to zero
(Monte Carlo arithmetic: Parker, 1997). Results that float32 holds stay, so whole numbers, masks and ties are as they were.
Operands are moved as for what sums lose, since what is left of large terms is off by the last bits of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.grading.case import Case
from ridgeline.tools.judge.worker.grading.class_errors import moved_operands
from ridgeline.tools.judge.worker.grading.compare import Expected
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import LAST_BITS, LAST_BITS_DRAWS, LAST_BITS_REACH, SUM_ERROR
from ridgeline.tools.records.vocabulary import PrecisionClass

_JUMPS = frozenset(
    {"round", "floor", "ceil", "trunc", "frac", "sign", "sgn", "floor_divide", "remainder", "fmod", "heaviside"}
)
"""Operations of floating numbers that jump; those whose results are of another type are told by that."""


def excused(reference: Reference, case: Case, index: int, output: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield an output as it is expected wherever last bits decide on it, by ever more draws; nothing where none can.

    A number may be as far off as twice the furthest that a draw has at that very place. What is further off stays so by the
    rest. An integer may be what a draw has. Where the reference is continuous nothing is excused: gates know what it loses.
    """
    want = case.expected[index]
    allowed: torch.Tensor | None = None
    for rng_seed in range(LAST_BITS_DRAWS):
        draw = _draw(reference, case, index, rng_seed)
        if draw is None or draw.shape != want.values.shape:
            return
        if want.is_exact:
            output = torch.where(output == draw, want.values, output)
            yield output
            continue
        apart = (draw.double() - want.values).abs_().nan_to_num_(0.0, 0.0, 0.0)
        allowed = apart if allowed is None else torch.maximum(allowed, apart, out=allowed)
        yield _nearer(output, want, LAST_BITS_REACH * allowed)


def _nearer(output: torch.Tensor, want: Expected, by: torch.Tensor) -> torch.Tensor:
    """Return an output in float64, nearer to the expected one by at most this much at each place."""
    apart = output.double() - want.values
    return want.values + torch.copysign((apart.abs() - by).clamp_(min=0.0), apart)


def _draw(reference: Reference, case: Case, index: int, rng_seed: int) -> torch.Tensor | None:
    """Return an output of a draw; None where the reference refuses it, or nothing on the way jumps."""
    rounding = LastBits(torch.Generator(case.inputs[0].device).manual_seed(rng_seed))
    operands = moved_operands(case, SUM_ERROR[PrecisionClass.FP32], rng_seed)
    try:
        with torch.no_grad(), rounding:
            outputs = reference.run_double(*operands)
    except BadReferenceError:
        return None
    return outputs[index] if rounding.is_jump_found else None


class LastBits(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Rounds each result in float64 that float32 does not hold to one that it does, nearer to zero by up to `LAST_BITS`."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.is_jump_found = False  # an operation on the way that jumps where last bits decide
        self._generator = generator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_rounded = (kwargs or {}).get("rounding_mode") is not None
        self.is_jump_found = self.is_jump_found or is_rounded or _may_jump(func, (args, kwargs), result)
        if any(returned.alias_info is not None for returned in func._schema.returns):
            return result
        return _pytree.tree_map(self._rounded, result)

    def _rounded(self, made: Any) -> Any:
        if not isinstance(made, torch.Tensor) or made.dtype is not torch.float64:
            return made
        held = made.float().double()
        if torch.equal(held, made):
            return made
        shares = torch.rand(made.shape, generator=self._generator, device=self._generator.device).to(made.device)
        moved = made * (1 - LAST_BITS * shares.double())
        rounded = moved.float().double()
        is_number = torch.isfinite(rounded) & (rounded != 0)  # float64 goes further at both ends
        return torch.where(held == made, made, torch.where(is_number, rounded, moved))


def _may_jump(func: Any, given: Any, result: Any) -> bool:
    """Return whether an operation rounds, or makes integers, bools or numbers of fewer bits of floating ones."""
    if str(func.overloadpacket).removeprefix("aten.").rstrip("_") in _JUMPS:
        return True
    floating = [t for t in _tensors(given) if t.is_floating_point()]
    widest = max((t.element_size() for t in floating), default=0)
    return any(
        not made.is_complex() and (not made.is_floating_point() or made.element_size() < widest)
        for made in _tensors(result)
        if floating
    )


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [each for each in _pytree.tree_leaves(tree) if isinstance(each, torch.Tensor)]
