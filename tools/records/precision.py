"""The gates of the comparison: the largest errors allowed in each class of arithmetic.

Errors are relative: e = |o - o64| / |o64 - mean(o64)|, where o64 is the reference in float64. The classes lie an order
of magnitude apart: docs/calibration.md has the errors measured of a matmul, softmax, layer norm and elementwise chain.
Only a softmax in fp8 is as wrong as noise.

A trial's gate is a multiple of the class's own error on that very trial (the reference's operands rounded to the class,
then computed in float64), and never below the class's nominal gate: inputs with a large mean lose digits in every
kernel alike. Where an error comes near such a limit, what sums lose counts as well (`PLAIN_LANES`, `SUM_ERROR`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.error_map import LimitUse, Measure
from ridgeline.tools.records.vocabulary import STRICTEST_FIRST, PrecisionClass

NOMINAL_GATE: Mapping[PrecisionClass, float] = {
    PrecisionClass.FP64: 2e-12,
    PrecisionClass.FP32: 1e-5,
    PrecisionClass.TF32: 1e-3,
    PrecisionClass.FP16: 1e-3,
    PrecisionClass.BF16: 8e-3,
    PrecisionClass.FP8: 1e-1,
}
"""Gates for nominal inputs: 1.6 to 1.7 times the largest error measured for tf32, fp16 and bf16, and for fp8 without its
softmax; 9 times for fp32, whose sums are as wrong as they are long. That of fp64 is 4 times what a sum of 1e8
numbers one after another is off; operands rounded to float32 cost a product or an exponential 2e-8."""

OWN_MULTIPLE: Mapping[PrecisionClass, float] = {
    PrecisionClass.FP64: 4.0,
    PrecisionClass.FP32: 4.0,
    PrecisionClass.TF32: 2.5,
    PrecisionClass.FP16: 2.5,
    PrecisionClass.BF16: 2.5,
    PrecisionClass.FP8: 2.0,
}
"""Multiple of the class's own error that is allowed: another order of summation, one more rounding."""

SUM_ERROR: Mapping[PrecisionClass, float] = {
    PrecisionClass.FP64: 2.0**-46,
    PrecisionClass.FP32: 2.0**-23,
    PrecisionClass.TF32: 2.0**-21,
    PrecisionClass.FP16: 2.0**-21,
    PrecisionClass.BF16: 2.0**-21,
    PrecisionClass.FP8: 2.0**-21,
}
"""Relative change of the operands that moves an output as far as sums in fp32 do: another order of them, and in the other
classes tensor cores, which cut every product off at the last bits of the largest. Half of them are smaller by twice this.
In fp64 it is what sums of 2^14 numbers in another order may lose, and the class's own error too.

It counts where large terms nearly cancel: two scores of 50,000 of an attention whose difference chooses between two rows.
Few rows are so, and the largest error of few is another one in every kernel and under every secret."""

ROW_SLACK: Mapping[PrecisionClass, float] = {
    PrecisionClass.FP64: 64.0,
    PrecisionClass.FP32: 64.0,
    PrecisionClass.TF32: 4.0,
    PrecisionClass.FP16: 4.0,
    PrecisionClass.BF16: 4.0,
    PrecisionClass.FP8: 4.0,
}
"""A row's nominal gate over the whole output's: the worst of thousands of rows, not their root mean square.

A fast algorithm in fp32 (Winograd, Strassen) adds numbers of neighbouring rows and takes them away again, so a row loses
what is little beside its neighbours: F(4x4, 3x3) has rows of 2.3e-4 beside a value of 250 x the rms. At 64 x, 6.4e-4, one
row in bf16 (2.0e-3) still is no fp32's."""

MIN_ROW_ELEMENTS = 16
"""Rows shorter than this are not judged by themselves: a few elements have no stable norm."""

FEW_ELEMENTS = MIN_ROW_ELEMENTS
"""So few numbers have no stable norm either: a sum of signed terms is now and then next to nothing, and its error beside it is
large in every honest kernel. Their nominal gates are multiplied by their condition number, where an error is near them."""

NEARLY_EQUAL = 0.1
"""Numbers that spread by less than this part of their norm are held to how they are conditioned too: each channel's variance is
as large as the next one's, and what any sum loses of it is large beside the little by which they differ."""

PLAIN_LANES = (8, 16)
"""Lanes in which a plain kernel for a CPU adds up in float32. What the reference's own sums lose so counts as fp32's own error,
where an error is near a limit."""

PLAIN_SCALES = (1.0, 1.37, 1.17, 1.71)
"""Factors of all terms of a plain sum, by any lanes: where most terms are alike each addition rounds alike, by what that one
number is, and of few rows one decides whose largest terms are nearly equal."""

FEW_LANES = 1
"""Lanes of a plain loop that no compiler makes several of, as it may not reorder sums in float32."""

LONGEST_FEW = 4096
"""Terms that each of so `FEW_LANES` adds up at most: who adds more of them in one float loses what a judge looks for."""

BEYOND_SUMS = 16.0
"""Plain sums are made in one way after the other, in the order of `PLAIN_WAYS` (the judge's plain_sums.py), only while
error <= this x limit, where limit = max(nominal gate, multiple x largest error of the class and of the ways so far): no other
way makes a larger one up."""

LOSSY_SHARE = 1 / 8
"""Share of a limit from which on PyTorch's own error is one sample of what float32 loses there: near such a limit its errors on
neighbouring operands count too."""

NEIGHBOURS = 6
"""Draws of neighbouring operands at most: of luck that every other operand has, one of 128 trials is all luck."""

LONGEST_LANE = 1 << 16
"""Terms that one lane of a plain sum adds up at most: who adds more of them has threads, or adds in blocks."""

LAST_BITS = 2.0**-20
"""Part of itself that each result in the reference may be nearer to zero where a rounding or a comparison follows: 16 units of
float32. An element that moves as far as a whole step so may lie on either side of the boundary; one in tf32 is 2^8 times
further off."""

LAST_BITS_DRAWS = 32
"""Draws of results that are `LAST_BITS` nearer to zero, or further from it in half of them. Of either half one of three moves
an element that honest kernels move to the other side, so 0.1 % are missed."""

LAST_BITS_REACH = 2.0
"""Multiple of an element's furthest draw with other last bits by which that very element may be off: two steps in one row."""

SUMS_REACH = (1.0, -1.0, OWN_MULTIPLE[PrecisionClass.FP32], -OWN_MULTIPLE[PrecisionClass.FP32])
"""Multiples of what plain sums lose by which a sum may be off on either side of a boundary, as in limits: a chain of another
scale loses more or less, and its sign is luck."""

WELL_CONDITIONED_SHARE = 15 / 16
"""Share of an output's elements, those that other last bits move least, which are held to a limit of their own where the whole
output's is beyond the nominal gate: a denominator next to zero leaves few digits of single elements, not of the others."""

PART_SLACK = 4.0
"""That part's multiple of its own error over the whole output's: of a handful of runs, and of another algorithm."""

MOVED_DRAWS = 16
"""Draws of operands with other last bits that tell how far each other element may be off."""

FEWEST_CONDITIONED = 256
"""Elements below which there is no such part: few move as far by chance as by how they are conditioned."""

ROW_NORM_FLOOR = 1e-3
"""A row's error is taken over max(|row - mean(row)|, this x |row|), so that a nearly constant row does not explode."""

ROW_SCALE_FLOOR = 0.1
"""A row's error is taken over at least this x the whole output's rms: a row that ReLU nearly made zero has no scale of its own.
At 0.01 the worst row of a Winograd convolution lay anywhere between 0.3 and 3 of its limit, by the draw. Row scales of the
row_scaled trial span 2^10: a wrong row of the smallest, 3.6e-3 of the rms, still is 0.036, beyond bf16's limit."""

LOST_ROW = 0.25
"""A row too small for the limit of rows may be off by this x its own size; beyond it, the row is lost."""

LOST_STEADY: Mapping[PrecisionClass, float] = {
    PrecisionClass.FP64: 0.01,
    PrecisionClass.FP32: 0.01,
    PrecisionClass.TF32: 0.1,
    PrecisionClass.FP16: 0.1,
    PrecisionClass.BF16: 0.1,
    PrecisionClass.FP8: 0.1,
}
"""A row counts as lost only where each accepted class's own error moves it by less than this x `LOST_ROW`. Any row that an
honest kernel may lose is moved by more: what is left of a cancellation, a number below a type's range. A row in bf16 is some
3e-3 off its own size."""

LOST_MOVED = 2e-4
"""A row counts as lost only where what sums lose, other last bits of the operands, moves it by less than this x `LOST_ROW`. A
variance in one pass loses the square of what its operands' last bits are multiplied by: 400 of them here, 1e-2 of the row in
fp32."""

ELEMENT_SLACK: Mapping[PrecisionClass, float] = {
    PrecisionClass.FP64: 64.0,
    PrecisionClass.FP32: 64.0,
    PrecisionClass.TF32: 8.0,
    PrecisionClass.FP16: 8.0,
    PrecisionClass.BF16: 8.0,
    PrecisionClass.FP8: 4.0,
}
"""An element's nominal bound over the gate: the largest of 1e7 Gaussian errors is 5.3 sigma, and fp32 sums in another
order have longer tails: F(4x4, 3x3) has elements of 2.3e-4 beside a value of 250 x the rms. At 32 x bf16's gate a single wrong
element would pass for bf16."""

CRFM_TOLERANCE = 1e-2
"""`tolerance: crfm`: absolute and relative, the rule under which the original figures were published."""

CONSTANT_SPREAD = 1e-6
"""An expected output is constant when |o64 - mean| is below this x |o64|: any kernel that writes one number passes."""

NEAR_LIMIT = 0.5
"""A figure beyond this x its limit may lie beyond the limit for other inputs: fresh secrets decide."""

FRESH_SECRETS = 3
"""Further secrets that decide on a candidate with a figure near a limit."""

REPEAT_LIMIT: float = 1.0
"""Two runs on the same inputs may differ by this x the trial's gate (atomics), or the kernel is wrong, not just
nondeterministic."""

_STORED_IN_16_BITS = {"bfloat16": PrecisionClass.BF16, "float16": PrecisionClass.FP16}
_OUTPUT_CLASS = {"float64": PrecisionClass.FP64} | _STORED_IN_16_BITS


SMALLEST_ROW: Mapping[str, float] = {"float16": 2.0**-12, "bfloat16": 1e-30, "float32": 1e-30, "float64": 1e-150}
"""Root mean square of a row, by the output's type, below which nothing is asked of it: what led there may have been below the
type's range, and flushing that to zero is legal."""


def small_share(precision: PrecisionClass) -> float:
    """Return the share of the output's rms below which the limit of rows lets a row be anything, in bf16 at most."""
    known = min(precision, PrecisionClass.BF16, key=strictness)
    return ROW_SCALE_FLOOR * ROW_SLACK[known] * NOMINAL_GATE[known]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """One output's distance from float64, three ways; the worst output's when there are several."""

    overall: float  # |o - o64| / |o64 - mean(o64)|
    worst_row: float = 0.0  # the same per row; 0.0 when rows are too short
    worst_element: float = 0.0  # max |o - o64| / (rms(o64) + |o64|)

    @property
    def is_none(self) -> bool:
        """Return whether every number is the one that is expected."""
        return self.overall == 0.0 and self.worst_element == 0.0

    def merged(self, other: Errors) -> Errors:
        """Return the worse of two outputs' errors."""
        return Errors(
            overall=max(self.overall, other.overall),
            worst_row=max(self.worst_row, other.worst_row),
            worst_element=max(self.worst_element, other.worst_element),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The largest errors that one trial allows in one class."""

    overall: float
    row: float
    element: float

    def admits(self, errors: Errors) -> bool:
        """Return whether all three distances are within the gate."""
        return all(use.is_within for use in self.uses(errors))

    def is_near(self, errors: Errors) -> bool:
        """Return whether a distance is beyond half of its limit."""
        return any(use.factor > NEAR_LIMIT for use in self.uses(errors))

    def is_nearly_used_up(self, errors: Errors) -> bool:
        """Return whether a row or an element is beyond half of its limit in an output that is right as a whole."""
        overall, *worst = self.uses(errors)
        return overall.is_within and any(use.factor > NEAR_LIMIT for use in worst)

    def uses(self, errors: Errors) -> tuple[LimitUse, LimitUse, LimitUse]:
        """Return each distance beside its limit."""
        return (
            LimitUse(measure=Measure.OUTPUT, figure=errors.overall, limit=self.overall),
            LimitUse(measure=Measure.ROW, figure=errors.worst_row, limit=self.row),
            LimitUse(measure=Measure.ELEMENT, figure=errors.worst_element, limit=self.element),
        )


def gate_for(
    precision: PrecisionClass,
    own: Errors,
    *,
    sums: Errors | None = None,
    condition: float = 1.0,
    tightened: bool = False,
    least: Errors | None = None,
) -> Gate:
    """Return a trial's gate for a class, given the class's own error on that trial.

    `sums` is what `SUM_ERROR` does to the trial; only the limits of rows and elements know it. `condition` is an output's
    relative change over that of its operands, 1 or more: of few numbers. `tightened` drops the nominal gate, so that only the
    multiple of the class's own error counts; no limit is below what is `least`.
    """
    least = least or Errors(overall=0.0)
    nominal, multiple = (0.0 if tightened else condition * NOMINAL_GATE[precision]), OWN_MULTIPLE[precision]
    worst = own.merged(sums) if sums else own
    return Gate(
        overall=max(least.overall, nominal, multiple * own.overall),
        row=max(least.worst_row, ROW_SLACK[precision] * nominal, multiple * worst.worst_row),
        element=max(least.worst_element, ELEMENT_SLACK[precision] * nominal, multiple * worst.worst_element),
    )


def part_gate(precision: PrecisionClass, own: float, condition: float = 1.0) -> float:
    """Return the limit of an output's well-conditioned part, given the most that honest outputs err there."""
    return max(condition * NOMINAL_GATE[precision], PART_SLACK * OWN_MULTIPLE[precision] * own)


def loosest(classes: Iterable[PrecisionClass | None]) -> PrecisionClass | None:
    """Return the loosest of classes, None where one is None, and of none: exact is the strictest, the 1e-2 rule the loosest."""
    order = (PrecisionClass.EXACT, *STRICTEST_FIRST, PrecisionClass.CRFM)
    given = list(classes)
    known = [each for each in given if each is not None]
    return max(known, key=order.index, default=None) if len(known) == len(given) else None


def accepted_classes(tolerance: PrecisionClass, output_dtypes: tuple[str, ...]) -> tuple[PrecisionClass, ...]:
    """Return the classes a problem accepts, strictest first: an output cannot be better than its type.

    Raises:
        ProblemError: the tolerance is `exact`, of which no arithmetic is.
    """
    known = (*STRICTEST_FIRST, PrecisionClass.CRFM)
    if tolerance not in known:
        raise ProblemError(f"tolerance: {tolerance} is not one of {', '.join(known)}")
    allowed = PrecisionClass.BF16 if tolerance is PrecisionClass.CRFM else tolerance
    floating = [d for d in output_dtypes if "float" in d] or ["float32"]
    stored = max(strictness(_OUTPUT_CLASS.get(d, PrecisionClass.FP32)) for d in floating)
    last = max(stored, strictness(allowed))
    return STRICTEST_FIRST[stored : last + 1]


def asked_of(tolerance: PrecisionClass, output_dtypes: Collection[str]) -> PrecisionClass:
    """Return a tolerance as it is told: fp32 in place of fp64 where no output is in float64."""
    is_more = tolerance is PrecisionClass.FP64 and "float64" not in output_dtypes
    return PrecisionClass.FP32 if is_more else tolerance


def allows_tf32(tolerance: PrecisionClass, operand_dtypes: Collection[str], output_dtypes: tuple[str, ...]) -> bool:
    """Return whether products may be taken as tf32: a class as loose is accepted, or every operand is stored in 16 bits.

    fp16 and bf16 have no more mantissa than tf32, so their products are exact on a tensor core that adds in fp32.

    Raises:
        ProblemError: the tolerance is `exact`, of which no arithmetic is.
    """
    if operand_dtypes and all(d in _STORED_IN_16_BITS for d in operand_dtypes):
        return True
    return strictness(accepted_classes(tolerance, output_dtypes)[-1]) >= strictness(PrecisionClass.TF32)


def strictness(precision: PrecisionClass) -> int:
    """Return a class's place in the order, 0 for the strictest."""
    return STRICTEST_FIRST.index(precision)
