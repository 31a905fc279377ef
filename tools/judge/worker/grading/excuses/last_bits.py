"""Decisions that no computation makes: last bits beside a boundary, and which of equal numbers is chosen.

A number beside that of a rounding, a comparison or a maximum may fall to either side. The reference runs in float64 with
each result that float32 does not hold rounded at random, a few last bits nearer to zero, or further from it (Monte Carlo
arithmetic: Parker, 1997). Results that float32 holds stay, so whole numbers and masks are as they were, and equal numbers
stay equal. Operands are moved as for what sums lose, since what is left of large terms is off by the last bits of these.

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
from collections.abc import Iterator
from dataclasses import replace

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.cases.class_errors import moved
from ridgeline.tools.judge.worker.grading.cases.vector_signs import signed_as
from ridgeline.tools.judge.worker.grading.excuses.choices import Choices, Way
from ridgeline.tools.judge.worker.grading.excuses.explained import Explained, merged
from ridgeline.tools.judge.worker.grading.excuses.random_rounding import LastBits, shares_of
from ridgeline.tools.judge.worker.grading.limits.plain_sums import PLAIN_WAYS, PlainSums
from ridgeline.tools.judge.worker.grading.outputs.compare import share_beyond
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import LAST_BITS_DRAWS, SUM_ERROR, SUMS_REACH, Errors
from ridgeline.tools.records.vocabulary import PrecisionClass

_MOST_OTHERS = 1 / 4  # of an output's numbers: with more of them far off no run of the reference tells more
_DRAWS_FOR_FEW = LAST_BITS_DRAWS // 2  # by then each of few numbers that last bits decide on has fallen to both sides


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
