"""Decisions that no computation makes: last bits beside a boundary, and which of equal numbers is chosen.

A number beside that of a rounding, a comparison or a maximum may fall to either side. The reference runs in float64 with
each result that float32 does not hold rounded at random, a few last bits nearer to zero, or further from it (Monte Carlo
arithmetic: Parker, 1997). Results that float32 holds stay, so whole numbers and masks are as they were, and equal numbers
stay equal. Operands are moved as for what sums lose, since what is left of large terms is off by the last bits of these.

The mean of numbers that are all alike may be off by last bits too: a kernel multiplies their sum by a rounded 1/n, and what is
left of the numbers less that mean, over a deviation of nothing, is anything.

A sum of many terms in one float loses more than last bits, so where these do not explain an output plain sums are made too, and
those that are as far off to the other side, or four times as far.

Among equals each run chooses in one way (choices.py). An output is right where one way gives each of its rows.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, operation_name
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.cases.class_errors import moved
from ridgeline.tools.judge.worker.grading.cases.vector_signs import signed_as
from ridgeline.tools.judge.worker.grading.excuses.choices import Choices, Way
from ridgeline.tools.judge.worker.grading.excuses.explained import Explained, merged
from ridgeline.tools.judge.worker.grading.limits.plain_sums import PLAIN_WAYS, PRODUCTS, PlainSums
from ridgeline.tools.judge.worker.grading.outputs.compare import share_beyond
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import LAST_BITS, LAST_BITS_DRAWS, SUM_ERROR, SUMS_REACH, Errors
from ridgeline.tools.records.vocabulary import PrecisionClass

_FEWEST_ALIKE = 3
_MOST_OTHERS = 1 / 4  # of an output's numbers: with more of them far off no run of the reference tells more
_DRAWS_FOR_FEW = LAST_BITS_DRAWS // 2  # by then each of few numbers that last bits decide on has fallen to both sides
_JUMPS = frozenset(
    {"round", "floor", "ceil", "trunc", "frac", "sign", "sgn", "floor_divide", "remainder", "fmod", "heaviside"}
)
"""Operations of floating numbers that jump; those whose results are of another type are told by that."""

_SUMS = frozenset({*PRODUCTS, "convolution", "sum", "mean"})
"""Operations that add in float32 and round the sum, where their numbers are of 16 bits: last bits of it decide.

Only linear ones: of the sizes of numbers they give the size of all terms. PlainSums has a way of its own for norms and other
functions of sums, which are not, and none for a convolution.
"""


def excused(
    reference: Reference, case: Case, index: int, outputs: Tensors, *, is_far: bool = False
) -> Iterator[torch.Tensor]:
    """Yield an output as it is expected wherever last bits or equals decide on it, by ever more draws; nothing where none can.

    A number may be as far off as twice the furthest that a draw has at that very place. What is further off stays so by the
    rest. An integer may be what a draw has. Where the reference is continuous nothing is excused: gates know what it loses.
    An output that `is_far` off can be so by its choices alone.
    """
    ways = _Ways(reference, case, index, outputs)
    if ways.is_choice:
        yield ways.output()
    elif is_far:
        return
    for rng_seed in range(LAST_BITS_DRAWS):
        for explained in ways.found:
            if not explained.add(ways.draw(explained.way, rng_seed)):
                return
        yield ways.output()
    if all(each.is_cpu for each in case.inputs):
        yield from _excused_by_sums(ways)


def is_given_up(output: torch.Tensor, want: Expected, errors: Errors, *, far: float, n_draws: int = 0) -> bool:
    """Return whether what is left of an output after so many draws is too far off for another one to tell more.

    `far` is an error of the whole beyond which it is. Few numbers may be far off by themselves: a ray that misses by a last
    bit has the distance of a miss.
    """
    if want.is_exact:
        return errors.overall > _MOST_OTHERS
    if errors.overall <= far:
        return False
    is_late = n_draws >= _DRAWS_FOR_FEW or math.isinf(errors.overall)
    return is_late or share_beyond(output, want, far * want.rms) > _MOST_OTHERS


def _excused_by_sums(ways: _Ways) -> Iterator[torch.Tensor]:
    """Yield an output as it is expected wherever what plain sums lose decides on it, too; nothing where none is made.

    Each has a scale of its own: of terms that are alike every one loses something else.
    """
    for rng_seed, (reach, lanes) in enumerate(itertools.product(SUMS_REACH, PLAIN_WAYS), LAST_BITS_DRAWS):
        scale = 1 + random.Random(rng_seed).random()
        sums = PlainSums(replace(lanes, scale=scale, makes_products=False), reach)
        for explained in ways.found:
            if not explained.add(ways.draw(explained.way, rng_seed, sums)) or not sums.has_summed:
                return
        yield ways.output()


class _Ways:
    """The ways in which a reference may choose, and what each of them explains of an output."""

    def __init__(self, reference: Reference, case: Case, index: int, outputs: Tensors) -> None:
        self._narrow = _narrow_type_of(case)
        self._reference, self._case, self._index = reference, case, index
        self._want, self._output = case.expected[index].values, outputs[index]
        guides = tuple(o for o in outputs if o.dtype in (torch.int32, torch.int64) and o.numel())
        first = self._first(guides)
        self._types = case.choices[0]
        self.is_choice = first is not None
        ways = [Way()] if first is None or first.is_free else []
        if first is not None:
            ways += [Way(takes_last=end, guides=guides) for end in (False, True) if first.is_free or not end]
        self.found = [Explained(way, self._output, self._want, self._base(way)) for way in ways]

    def output(self) -> torch.Tensor:
        """Return the output, as it is expected where a way explains it."""
        return merged(self.found, self._output, self._want)

    def _first(self, guides: Tensors) -> Choices | None:
        """Return the choices of a run in the reference's own type; None where there are none of which nothing is specified."""
        if self._case.choices and not self._case.choices[0]:
            return None
        choices = Choices(Way(takes_last=False, guides=guides))
        try:
            with torch.no_grad(), choices:
                self._reference.in_own_type(self._case.inputs, self._case.parameters)
        except BadReferenceError:
            choices = Choices(Way())
        self._case.choices[:] = [tuple(choices.types)]
        return choices if choices.is_found else None

    def _base(self, way: Way) -> torch.Tensor | None:
        """Return what the reference gives in a way without other last bits; None for what is expected."""
        if way.takes_last is None:
            return None
        operands = self._case.inputs, self._case.parameters
        is_exact = not self._want.is_floating_point()
        run = self._reference.in_own_type if is_exact else self._reference.run_double
        try:
            signs = signed_as(self._reference, self._case.expected)
            with torch.no_grad(), signs, Choices(self._typed(way, is_rounded=not is_exact)):
                return run(*operands)[self._index]
        except BadReferenceError:
            return None

    def _typed(self, way: Way, *, is_rounded: bool, is_flushed: bool = False) -> Way:
        types = self._types if is_rounded else ()
        return Way(takes_last=way.takes_last, guides=way.guides, types=types, is_flushed=is_flushed)

    def draw(self, way: Way, rng_seed: int, sums: PlainSums | None = None) -> torch.Tensor | None:
        """Return an output of a draw, by plain sums or not; None where the reference refuses it, or nothing on the way jumps.

        Every other draw chooses among numbers as the reference's own type has them, and every fourth among those of which the
        smallest are 0: a kernel may keep more digits than that type has, or flush. Half of them have results further from zero:
        no operand stands for a scale that is written into the reference. Where all operands are of one type of 16 bits, every
        other draw rounds about half of the results to it: a kernel may compute in more, from one result on or from another.
        """
        case = self._case
        operands = _moved_operands(case, rng_seed)
        choices = self._typed(way, is_rounded=rng_seed % 2 == 1, is_flushed=rng_seed % 4 == 3)
        for run, dtype in ((self._reference.in_double, torch.float64), (self._reference.in_own_type, torch.float32)):
            narrow = self._narrow if rng_seed % 2 == 1 else None
            rounding = LastBits(rng_seed, dtype, is_up=rng_seed % 4 in (1, 2), narrow=narrow)
            try:
                signs = signed_as(self._reference, case.expected)
                with torch.no_grad(), signs, Choices(choices), sums or contextlib.nullcontext(), rounding:
                    outputs = run(*operands)
            except BadReferenceError:
                return None
            if outputs is None or not rounding.has_rounded:
                continue  # it computes in float32, whatever it is given
            return outputs[self._index] if rounding.is_jump_found else None
        return None


def _narrow_type_of(case: Case) -> torch.dtype | None:
    """Return the type of 16 bits that all floating operands have, None where there is another one among them."""
    types = {t.dtype for t in (*case.inputs, *case.parameters.values()) if t.is_floating_point()}
    return types.pop() if types in ({torch.bfloat16}, {torch.float16}) else None


def _moved_operands(case: Case, rng_seed: int) -> tuple[Tensors, dict[str, torch.Tensor]]:
    """Return a case's inputs and parameters in float64, about half of them nearer to zero by some last bits.

    Equal numbers are moved alike, those of two arguments too: what lies on an edge that a buffer holds is given, not rounded.
    """
    relative = SUM_ERROR[PrecisionClass.FP32]
    move = functools.partial(moved, relative=relative)

    def halves(tensor: torch.Tensor) -> torch.Tensor:
        return move(tensor, chosen=lambda values: shares_of(values, rng_seed, 0).lt(0.5).float())

    return tuple(map(halves, case.inputs)), {n: halves(t) for n, t in case.parameters.items()}


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
