"""The class that outputs are right in: each output by itself, by what its own class may err and what its own sums lose.

A statistic that loses most of its digits says nothing of the product beside it, nor a copy in bf16 of the fp32 output.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.cases.case import Case, EachErrors
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.cases.class_errors import worst_of
from ridgeline.tools.judge.worker.grading.cases.vector_signs import signed_case
from ridgeline.tools.judge.worker.grading.excuses.last_bits import excused, is_given_up
from ridgeline.tools.judge.worker.grading.excuses.neighbours import is_asked_for, neighbour_errors, neighbour_outputs
from ridgeline.tools.judge.worker.grading.limits.plain_sums import PLAIN_WAYS, plain_errors, plain_outputs
from ridgeline.tools.judge.worker.grading.outputs.compare import Difference, compare
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected, expect
from ridgeline.tools.judge.worker.grading.outputs.row_sizes import SmallRows
from ridgeline.tools.judge.worker.grading.outputs.small_rows import kept_rows
from ridgeline.tools.judge.worker.grading.outputs.type_range import flushed
from ridgeline.tools.judge.worker.grading.outputs.well_conditioned import least_error
from ridgeline.tools.records.error_map import LimitUse, Measure, nearest_limit
from ridgeline.tools.records.precision import (
    BEYOND_SUMS,
    CRFM_TOLERANCE,
    FEW_ELEMENTS,
    FEWEST_CONDITIONED,
    NEARLY_EQUAL,
    NEIGHBOURS,
    NOMINAL_GATE,
    Errors,
    Gate,
    accepted_classes,
    gate_for,
    loosest,
    part_gate,
    strictness,
)
from ridgeline.tools.records.trial_names import TINY_NUMBERS
from ridgeline.tools.records.vocabulary import STRICTEST_FIRST, PrecisionClass

_HOPELESS = 10 * NOMINAL_GATE[PrecisionClass.BF16]  # beyond this no class is worth computing for the message
_CRFM_GATE = Gate(overall=CRFM_TOLERANCE, row=CRFM_TOLERANCE, element=CRFM_TOLERANCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputGrade:
    """The grade of one output."""

    measured: PrecisionClass | None  # the strictest class whose gates it meets; None when it meets none
    gate: Gate
    passed: bool
    nearest: LimitUse | None  # of the measured class's limits, or of the loosest that is accepted; None: it is exact
    lost: SmallRows | None = None  # rows far below the rest that it does not have


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """The grade of one set of outputs."""

    errors: Errors  # the worst of all outputs
    measured: PrecisionClass | None  # the loosest of the outputs' classes; None where one meets none
    gate: Gate  # of the output that decides
    passed: bool
    passed_by: tuple[bool, ...]  # each output
    differences: tuple[Difference, ...]
    output: int  # which one decides: it is nearest to a limit, or furthest beyond it
    nearest: LimitUse | None  # None: all are exact
    lost: SmallRows | None = None  # of the output that decides


_Way = tuple[Callable[[Gate], bool], Callable[[], EachErrors | None]]
"""Whether a way is asked under a gate, and its errors."""


class Grader:
    """Grades the outputs of one problem."""

    def __init__(self, book: CaseBook, tolerance: PrecisionClass, dtypes: tuple[str, ...]) -> None:
        """Grade nothing yet; `dtypes` are the outputs'."""
        self._book = book
        self._accepted = tuple(accepted_classes(tolerance, (dtype,)) for dtype in dtypes)
        self._by_crfm = [tolerance is PrecisionClass.CRFM] * len(dtypes)
        self._tightened = [False] * len(dtypes)
        self._unrounded: frozenset[int] = frozenset()

    @property
    def accepted(self) -> tuple[PrecisionClass, ...]:
        """Return the classes that are accepted of any output, strictest first."""
        return tuple(p for p in STRICTEST_FIRST if any(p in classes for classes in self._accepted))

    def tighten(self, index: int) -> None:
        """Judge an output by its classes in place of the 1e-2 rule; where that is so already, by no nominal gate."""
        self._by_crfm[index], self._tightened[index] = False, not self._by_crfm[index]

    def expect_no_rounding(self, outputs: frozenset[int]) -> None:
        """Judge outputs that are made without any by no nominal gate, unless the 1e-2 rule does."""
        for index in outputs:
            self._tightened[index] = self._tightened[index] or not self._by_crfm[index]
        self._unrounded = outputs

    def is_tightened(self, index: int) -> bool:
        """Return whether no gate of an output is a nominal one."""
        return self._tightened[index]

    def differences(self, outputs: Tensors, expected: tuple[Expected, ...]) -> tuple[Difference, ...]:
        """Return how far each output is from the expected one."""
        triples = zip(outputs, expected, self._by_crfm, strict=True)
        return tuple(compare(output, want, with_crfm=by_crfm) for output, want, by_crfm in triples)

    def grade(self, outputs: Tensors, case: Case, differences: tuple[Difference, ...] = ()) -> Grade:
        """Return the grade of a case's outputs; `differences` are theirs, where they are known.

        Where they are not right otherwise, vectors may have other signs: those of all outputs together.
        """
        grade = self._grade(outputs, case, differences or self.differences(outputs, case.expected))
        if grade.passed:
            return grade
        with self._book.running(case) as reference:
            other = signed_case(reference, case, outputs)
        if other is None:
            return grade
        signed = self._grade(outputs, other, self.differences(outputs, other.expected))
        return signed if signed.passed else grade

    def _grade(self, outputs: Tensors, case: Case, differences: tuple[Difference, ...]) -> Grade:
        found = [
            self._with_small_rows(case, i, outputs[i], self._with_last_bits(case, i, outputs, d))
            for i, d in enumerate(differences)
        ]
        index = max(range(len(found)), key=lambda i: _how_near(found[i]), default=0)
        return Grade(
            errors=functools.reduce(Errors.merged, (d.errors for d in differences), Errors(overall=0.0)),
            measured=loosest(each.measured for each in found),
            gate=found[index].gate,
            passed=all(each.passed for each in found),
            passed_by=tuple(each.passed for each in found),
            differences=differences,
            output=index,
            nearest=found[index].nearest,
            lost=found[index].lost,
        )

    def repeat_difference(self, outputs: Tensors, earlier: Tensors, case: Case) -> float:
        """Return how far a second run's outputs are from the first one's, the worst of all: both are right.

        Of an output whose well-conditioned part was asked for that part counts: the others may be another one's luck each time.
        """
        found = []
        for index, (output, other) in enumerate(zip(outputs, earlier, strict=True)):
            part = case.conditioned.get((index, self._accepted[index][-1]))
            whole = compare(output, expect(other.clone())).errors.overall
            found.append(whole if part is None else min(whole, part.apart(output, other)))
        return max(found)

    def _with_small_rows(self, case: Case, index: int, output: torch.Tensor, grade: OutputGrade) -> OutputGrade:
        """Return the grade of an output that is right so far, by how it keeps rows too small for the limit of rows.

        The 1e-2 rule does not ask for them, nor do tiny numbers (an exponential less one loses those), or exact outputs.
        """
        want, accepted = case.expected[index], self._accepted[index]
        is_asked = want.small is not None and case.name != TINY_NUMBERS and not self._by_crfm[index]
        if not (is_asked and grade.passed) or grade.measured is PrecisionClass.EXACT:
            return grade
        kept = kept_rows(output, want, accepted[-1], functools.partial(self._book.honest, case, index, accepted))
        if kept is None:
            return grade
        if kept.lost is None:
            return replace(grade, nearest=nearest_limit(grade.nearest, kept.use))
        return replace(grade, measured=None, passed=False, nearest=kept.use, lost=kept.lost)

    def _with_last_bits(self, case: Case, index: int, outputs: Tensors, difference: Difference) -> OutputGrade:
        """Return the grade of an output; of what is left where last bits or equals decide, if it is not right otherwise."""
        grade, want = self._grade_output(case, index, outputs[index], difference), case.expected[index]
        if grade.passed or difference.invalid_bools or (self._by_crfm[index] and not want.is_exact):
            return grade
        beside = self._beside_badly_conditioned(case, index, outputs[index], difference.errors)
        if beside is not None and beside.passed:
            return beside
        if self._accepted[index][-1] is PrecisionClass.FP64 and not want.is_exact:
            return grade
        is_far = is_given_up(outputs[index], want, difference.errors, far=_HOPELESS)
        with self._book.running(case) as reference:
            for n_draws, left in enumerate(excused(reference, case, index, outputs, is_far=is_far), 1):
                rest = compare(left, want)
                found = self._grade_output(case, index, left, rest)
                if found.passed:
                    return found
                if is_given_up(left, want, rest.errors, far=_HOPELESS, n_draws=n_draws):
                    break
        return grade

    def _beside_badly_conditioned(
        self, case: Case, index: int, output: torch.Tensor, errors: Errors
    ) -> OutputGrade | None:
        """Return the grade of an output that is wrong, but for what other last bits do to each badly conditioned element.

        Which of thousands of quotients is the largest, and how far it is off, is luck in every kernel. None where the others
        are wrong by themselves, or nothing is known of them.
        """
        last, want = self._accepted[index][-1], case.expected[index]
        if want.is_exact or want.values.numel() < FEWEST_CONDITIONED or math.isinf(errors.overall):
            return None
        own = self._book.own_errors(case, last)
        if own is None or least_error(output, want) > BEYOND_SUMS * part_gate(last, own[index].overall):
            return None  # it is wrong nearly everywhere: no run of the reference tells more
        use = self._part_use(case, index, output, errors, last)
        part = self._book.well_conditioned(case, index, last) if use is not None and use.is_within else None
        if part is None:
            return None
        left = part.without_the_others(output, want, self._book.moved(case, index, last))
        return self._grade_output(case, index, left, compare(left, want))

    def _grade_output(self, case: Case, index: int, output: torch.Tensor, difference: Difference) -> OutputGrade:
        errors = difference.errors
        gate_of = functools.cache(functools.partial(self._gate, case, index, errors))
        part_of = functools.cache(functools.partial(self._part_use, case, index, output, errors))
        measured = self._classify(index, errors, gate_of, part_of)
        in_class = (*gate_of(measured).uses(errors), part_of(measured)) if measured in STRICTEST_FIRST else ()
        if self._by_crfm[index]:
            found = LimitUse(measure=Measure.CRFM, figure=difference.crfm, limit=CRFM_TOLERANCE)
            return OutputGrade(
                measured=measured or (PrecisionClass.CRFM if found.is_within else None),
                gate=_CRFM_GATE,
                passed=found.is_within,
                nearest=nearest_limit(found, *in_class),
            )
        last = self._accepted[index][-1]
        gate = gate_of(last)
        is_exact = measured is PrecisionClass.EXACT
        passed = is_exact or (measured is not None and strictness(measured) <= strictness(last))
        if not passed:
            in_class = (*gate.uses(errors), part_of(last) if gate.admits(errors) else None)
        return OutputGrade(
            measured=measured,
            gate=gate,
            passed=passed,
            nearest=None if is_exact else nearest_limit(*in_class),
        )

    def _classify(
        self,
        index: int,
        errors: Errors,
        gate_of: Callable[[PrecisionClass], Gate],
        part_of: Callable[[PrecisionClass], LimitUse | None],
    ) -> PrecisionClass | None:
        if errors.is_none:
            return PrecisionClass.EXACT
        accepted = self._accepted[index]
        last = max(strictness(accepted[-1]), strictness(PrecisionClass.BF16))
        for precision in STRICTEST_FIRST[strictness(accepted[0]) : last + 1]:
            if errors.overall > _HOPELESS and strictness(precision) > strictness(accepted[-1]):
                return None
            if gate_of(precision).admits(errors):
                part = part_of(precision)
                if part is None or part.is_within:
                    return precision
        return None

    def _part_use(
        self, case: Case, index: int, output: torch.Tensor, errors: Errors, precision: PrecisionClass
    ) -> LimitUse | None:
        """Return how far an output's well-conditioned part is off; None where the nominal gate holds for all of it anyway.

        The 1e-2 rule asks for no more than itself, nor can anything be told of a few elements.
        """
        want = case.expected[index]
        least = max(NOMINAL_GATE[precision], want.off_by(flushed(precision)).overall)
        if errors.overall <= least or self._by_crfm[index]:
            return None
        part = self._book.well_conditioned(case, index, precision)
        if part is None:
            return None
        condition = self._book.condition_of(case, index) if want.spread < NEARLY_EQUAL * want.norm else 1.0

        def lost_another_way(way: int) -> float | None:
            if way == len(PLAIN_WAYS) + NEIGHBOURS or precision is PrecisionClass.FP64:
                return None
            with self._book.running(case) as reference:
                if way < len(PLAIN_WAYS):
                    outputs = plain_outputs(reference, case, PLAIN_WAYS[way])
                else:
                    outputs = neighbour_outputs(reference, case, way - len(PLAIN_WAYS))
            return 0.0 if outputs is None else part.error(outputs[index])

        return part.use(output, precision, condition, lost_another_way)

    def _gate(self, case: Case, index: int, errors: Errors, precision: PrecisionClass) -> Gate:
        """Return an output's limits in a class; all 0 where it cannot hold these numbers.

        They know how few or nearly equal numbers are conditioned, and what sums lose, only where these errors are near a
        limit that does not: few ever are.
        """
        own = self._book.own_errors(case, precision)
        if own is None:
            return Gate(overall=0.0, row=0.0, element=0.0)
        want = case.expected[index]
        least = want.off_by(flushed(precision))
        gate_of = functools.partial(gate_for, precision, tightened=self._tightened[index], least=least)
        gate = gate_of(own[index])
        if not gate.is_near(errors):
            return gate
        is_few = want.values.numel() < FEW_ELEMENTS
        if is_few or want.spread < NEARLY_EQUAL * want.norm:
            gate_of = functools.partial(gate_of, condition=self._book.condition_of(case, index))
            gate = gate_of(own[index])
        if precision is not PrecisionClass.FP64:
            for is_asked, lost in self._other_ways(case, errors):
                if is_asked(gate):
                    own = worst_of(own, lost())
                    gate = gate_of(own[index])
        if is_few or not gate.is_nearly_used_up(errors):
            return gate
        sums = self._book.sum_errors(case, precision)
        return gate_of(own[index], sums=sums[index] if sums else None)

    def _other_ways(self, case: Case, errors: Errors) -> Iterator[_Way]:
        """Give the other ways to compute a case: plain sums, then PyTorch beside the case."""

        def is_for_sums(way: int, gate: Gate) -> bool:
            is_hopeless = errors.overall > _HOPELESS or (way > 0 and errors.overall > BEYOND_SUMS * gate.overall)
            return gate.is_near(errors) and not is_hopeless

        for way in range(len(PLAIN_WAYS)):
            yield functools.partial(is_for_sums, way), functools.partial(self._plain_errors, case, way)
        for draw in range(NEIGHBOURS):
            yield functools.partial(is_asked_for, case, errors), functools.partial(self._errors_beside, case, draw)

    def _plain_errors(self, case: Case, way: int) -> EachErrors | None:
        """Return what plain sums of a way lose, computed once; None when nothing can be told of it, or of an earlier way."""
        if way == len(case.plain) and None not in case.plain:
            with self._book.running(case) as reference:
                case.plain.append(plain_errors(reference, case, PLAIN_WAYS[way : way + 1]))
        return case.plain[way] if way < len(case.plain) else None

    def _errors_beside(self, case: Case, draw: int) -> EachErrors | None:
        with self._book.running(case) as reference:
            return neighbour_errors(reference, case, draw)


def _how_near(grade: OutputGrade) -> tuple[bool, float]:
    return (not grade.passed, grade.nearest.factor if grade.nearest else -1.0)
